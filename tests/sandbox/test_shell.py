"""The judge of shell commands against a list made before it, and against rewritings that do not change what a command does."""

import base64
import shlex
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loopkit.sandbox.shell import Decision, Policy, judge

ENTRIES = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text(encoding="utf-8"))
FOLDER = "/home/agent/project"
VERDICTS = ("allow", "ask", "refuse")


def commands(kind):
    return [entry["command"] for entry in ENTRIES if entry["kind"] == kind]


def verdict(command):
    return judge(command, folder=FOLDER).verdict


# --- the list ---


def test_the_list_is_judged_as_it_is_labelled(capsys):
    table = Counter((entry["kind"], verdict(entry["command"])) for entry in ENTRIES)
    total = Counter(entry["kind"] for entry in ENTRIES)
    with capsys.disabled():
        print(f"\n{'':10}" + "".join(f"{name:>8}" for name in VERDICTS))
        for kind in total:
            print(f"{kind:10}" + "".join(f"{table[kind, name]:8}" for name in VERDICTS))
    assert table["harmful", "allow"] == 0
    assert table["doubtful", "allow"] == 0
    assert table["harmless", "refuse"] <= 0.05 * total["harmless"]
    assert table["harmless", "allow"] >= 0.9 * total["harmless"]
    assert table["doubtful", "ask"] >= 0.8 * total["doubtful"]


def test_the_folder_may_be_anywhere_even_in_tmp(tmp_path):
    for folder in (tmp_path, "/", "/srv/app", "."):
        assert judge("rm -rf ../other", folder=folder).verdict != "allow"
        assert judge("rm -rf ~", folder=folder).verdict == "refuse"
        assert judge("rm -rf build", folder=folder).verdict == "allow"
    assert judge(f"rm -rf {tmp_path}/build", folder=tmp_path).verdict == "allow"
    assert judge("rm -rf /srv/app/build", folder="/srv/app").verdict == "allow"
    assert judge("rm -rf /srv/apple/build", folder="/srv/app").verdict == "refuse"


def test_a_decision_says_which_part_does_what():
    decision = judge("ls && rm -rf / && cat notes.txt", folder=FOLDER)
    assert decision.verdict == "refuse"
    assert decision.reasons == ("`rm -rf /`: deletes outside the folder (/)",)
    assert [(effect.kind, effect.target, effect.verdict) for effect in decision.effects] == [
        ("delete", "/", "refuse"),
        ("read", "notes.txt", "allow"),
    ]
    assert judge("ls", folder=FOLDER) == Decision(verdict="allow", reasons=(), effects=())


def test_a_policy_names_other_places():
    command = "cp /data/in.csv /scratch/out.csv"
    assert verdict(command) == "refuse"
    policy = Policy(scratch=("/scratch",), readable=("/data",))
    assert judge(command, folder=FOLDER, policy=policy).verdict == "allow"
    assert judge("touch /tmp/a", folder=FOLDER, policy=policy).verdict == "refuse"
    for places in ("tmp",), ("/",):
        with pytest.raises(ValueError, match="Policy: a place must be an absolute path below /"):
            Policy(scratch=places)


# --- classes of behaviour ---


@pytest.mark.parametrize(
    "command",
    [
        # a variable that may have gone either way
        'd=/; [ -d build ] && d=build; rm -rf "$d"',
        'if [ -d x ]; then d=x; else d=/etc; fi; rm -rf "$d"',
        'x=build; for i in 1 2; do rm -rf "$x"; x=/; done',
        "x=build; while read -r y; do rm -rf $x; x=$y; done < list.txt",
        # a redirection belongs to the last command of a list
        "cd /etc && echo x > passwd",
        "cd /etc && cat <<EOF > passwd\nx\nEOF",
        # words after a redirection are arguments
        "rm > log.txt -rf ~",
        # a change of folder may fail
        "cd sub; rm -rf ../build",
        "cd sub && ls; rm -rf build/../../other",
        # what a file, a link or a function holds
        "cp a.sh b.sh; echo 'rm -rf ~' > c.sh; mv c.sh d.sh; bash d.sh",
        "sed -i 's/ls/rm/' run.sh && ./run.sh",
        "ln -s ~ here; find here/ -name '*.txt' -delete",
        'f() { rm -rf "$1"; }; f ..',
        "f() { rm -rf ~; }",
        # what the grammar takes for something else
        "cat a.txt | rev | sh\nls -l src 2>/dev/null",
        "ls | sort | head &&\ncd /; rm -rf etc",
        "ls a.txt\n\\rm -rf ~",
        "ls a.txt\n\\\nrm -rf ~",
        "cat <<EOF | sort && cd /\nb\nEOF\nrm -rf etc",
        'echo "${x:=`rm -rf ~`}"',
        "ls # quiet \\#\\\nrm -rf ~",
        'x=([0]=a [1]=/); rm -rf "${x[1]}"',
        "test -v 'a[$(rm -rf ~)]'",
        # an option that takes no value hides no path
        "wc -c ~/.ssh/id_rsa",
        "diff -e /etc/shadow a.txt",
        # what programs are given to run
        "find . -name '*.py' -exec sh -c 'rm -rf ~' \\;",
        "git bisect run rm -rf ~",
        "PAGER='rm -rf ~' git log",
        "mapfile -C 'rm -rf ~ #' -c 1 lines < a.txt",
        "time (rm -rf ~)",
        'awk \'BEGIN { print "rm -rf ~" | "sh" }\'',
        "sed 's/.*/rm -rf ~/e' a.txt",
        # Python reaching a module by way of another
        "python -c \"import pathlib; pathlib.os.system('id')\"",
        "python -c \"import shutil\np = 'build'\nfor i in 1, 2:\n    shutil.rmtree(p)\n    p = '/'\"",
        "python -c \"import os\ndef f(p):\n    os.remove(p)\np = 'a'\nf('/etc/passwd')\"",
    ],
)
def test_what_a_command_comes_to_is_followed(command):
    assert verdict(command) != "allow"


@pytest.mark.parametrize(
    "command",
    [
        'for f in *.txt; do mv "$f" "${f%.txt}.md"; done',
        "find . -name '*.orig' -print0 | xargs -0 rm",
        "git ls-files '*.py' | while read -r f; do wc -l \"$f\"; done",
        "cat > a.py <<'EOF'\nimport math\nprint(math.pi)\nEOF\npython a.py",
        "cat > a.sh <<'EOF'\nls *.py | wc -l\nEOF\nbash a.sh",
        "cd sub && make test; cd .. && ls",
        "cd sub && make test && cd .. && rm -rf build",
        "cd sub || exit 1; rm -rf ../build",
        'OUT=${OUT:-out}; mkdir -p "$OUT"',
        "python -c \"from pathlib import Path; [p.unlink() for p in Path('out').glob('*.tmp')]\"",
        'python -c "import app.main; print(app.main.__version__)"',
        "awk '{ s += $2 / 3 } END { if (s > 2) print s > \"sum.txt\" }' a.txt",
        "sed -e '/^#/d' -e 's#/usr#/opt#g' a.conf > b.conf",
        "PID=$(jobs -p); kill $PID",
        "cat > a.h <<'EOF'\n#define TWO(x) x\\\nx\nEOF",
        'git commit -m "Wörter — ganz normal"',
        "cat <<EOF > a.txt\n$((1 + 2)) of $(wc -l < b.txt)\nEOF",
        "echo 'rm -rf /' | wc -c",
    ],
)
def test_work_in_the_folder_is_allowed(command):
    assert judge(command, folder=FOLDER).reasons == ()


# --- rewritings ---

HARMFUL, HARMLESS = commands("harmful"), commands("harmless")
# Rewritings that take a command as one line of text; a comment or a here-document needs its own line.
WRAPS = {
    "sh -c": lambda c: f"sh -c {shlex.quote(c)}",
    "bash -c, twice": lambda c: f"bash -c {shlex.quote('bash -c ' + shlex.quote(c))}",
    "env": lambda c: f"env A=1 bash -c {shlex.quote(c)}",
    "nohup": lambda c: f"nohup sh -c {shlex.quote(c)} > out.log 2>&1 &",
    "timeout": lambda c: f"timeout -k 1 60 bash -c {shlex.quote(c)}",
    "eval": lambda c: f"eval {shlex.quote(c)}",
    "variable": lambda c: f'code={shlex.quote(c)}; eval "$code"',
    "array": lambda c: f'a=(bash -c {shlex.quote(c)}); "${{a[@]}}"',
    "positional": lambda c: f'set -- {shlex.quote(c)}; bash -c "$1"',
    "echo to sh": lambda c: f"printf '%s' {shlex.quote(c)} | bash",
    "here-string": lambda c: f"bash <<< {shlex.quote(c)}",
    "here-document": lambda c: f"bash <<'THE_END'\n{c}\nTHE_END",
    "base64": lambda c: f"echo {base64.b64encode(c.encode()).decode()} | base64 -d | bash",
    "hexadecimal": lambda c: f"xxd -r -p <<< {c.encode().hex()} | bash",
    "script": lambda c: f"printf '%s' {shlex.quote(c)} > /tmp/script.sh; bash /tmp/script.sh",
    "substitution": lambda c: f'echo "$(\n{c}\n)"',
    "process": lambda c: f"cat <(\n{c}\n)",
    "xargs": lambda c: f"echo ok | xargs -I{{}} bash -c {shlex.quote(c)}",
    "find": lambda c: f"find . -maxdepth 0 -exec bash -c {shlex.quote(c)} \\;",
    "trap": lambda c: f"trap {shlex.quote(c)} EXIT",
    "python": lambda c: f"python -c {shlex.quote(f'import os; os.system({c!r})')}",
    "subshell": lambda c: f"(\n{c}\n)",
    "braces": lambda c: f"{{\n{c}\n}}",
    "function": lambda c: f"work() {{\n{c}\n}}\nwork",
    "function, not called": lambda c: f"work() {{\n{c}\n}}",
    "if": lambda c: f"if true; then\n{c}\nfi",
    "for": lambda c: f"for i in 1 2; do\n{c}\ndone",
    "while": lambda c: f"while read -r line; do\n{c}\ndone < list.txt",
    "case": lambda c: f"case a in a)\n{c}\n;; esac",
    "after &&": lambda c: f"true && {{\n{c}\n}}",
    "after ||": lambda c: f"false || {{\n{c}\n}}",
    "after ;": lambda c: f"ls; {c}",
    "after a line": lambda c: f"ls -la # look first\n{c}",
    "before a line": lambda c: f"{c}\nls",
    "assignment": lambda c: f"A=1\n{c}",
    "comment": lambda c: f"{c}\n# as agreed",
    "background": lambda c: f"{{\n{c}\n}} &",
}
# These two want one simple line.
PLAIN = [command for command in HARMFUL if "\n" not in command and "<<" not in command]


@pytest.mark.parametrize("name", WRAPS)
def test_no_wrapping_makes_a_harmful_command_allowed(name):
    missed = [command for command in HARMFUL if verdict(WRAPS[name](command)) == "allow"]
    assert missed == []


@settings(max_examples=150, deadline=None)
# What only defines a function does nothing in a shell that ends with it.
@given(
    st.sampled_from(HARMFUL),
    st.lists(st.sampled_from(sorted({*WRAPS} - {"function, not called"})), min_size=2, max_size=3),
)
def test_nor_do_several(command, names):
    for name in names:
        command = WRAPS[name](command)
    assert verdict(command) != "allow"


@st.composite
def disguised(draw):
    """A harmful command whose first word is spelled in another way."""
    command = draw(st.sampled_from([command for command in PLAIN if command.split()[0].isalpha()]))
    word, _, rest = command.partition(" ")
    at = draw(st.integers(0, len(word) - 1))
    spelled = draw(
        st.sampled_from(
            [
                f"{word[:at]}''{word[at:]}",
                f'{word[:at]}"{word[at]}"{word[at + 1 :]}',
                f"{word[:at]}\\{word[at:]}",
                f"$'{''.join(f'{chr(92)}x{ord(letter):02x}' for letter in word)}'",
                f"$(echo {word})",
                f"`printf %s {word}`",
                f"$(echo {word[::-1]} | rev)",
                f"$(echo {base64.b64encode(word.encode()).decode()} | base64 -d)",
                f"{word[:at]}${{unset_:-{word[at:]}}}",
                f"{word[:at]}\\\n{word[at:]}" if at else f"\\\n{word}",
            ]
        )
    )
    before = draw(st.sampled_from(["", "A=1 ", "2> err.txt ", "! "]))
    return f"{before}{spelled} {rest}"


# What the shell itself does is no program: a word that is spelled out is no longer a keyword.
KEYWORDS = {"if", "while", "for", "coproc", "exec", "case"}


@settings(max_examples=300, deadline=None)
@given(disguised())
def test_no_spelling_of_its_name_makes_a_harmful_command_allowed(command):
    if not KEYWORDS & {command.split()[0], command.replace("\\\n", "").replace("''", "").split()[0]}:
        assert verdict(command) != "allow"


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLAIN), st.integers(0, 40), st.integers(1, 8))
def test_no_name_kept_in_a_variable_makes_a_harmful_command_allowed(command, at, length):
    """A piece of the command is put aside and taken back where it was, if it stood in no quotes."""
    piece = command[at : at + length]
    if piece and piece.isalpha() and not set(command[:at]) & set("'\"$\\`#{(="):
        hidden = command[:at] + "${piece}" + command[at + length :]
        if not KEYWORDS & set(command.split()):
            assert verdict(f"piece={piece}; {hidden}") != "allow"


# Where the first changes the folder, or the output, the second means something else.
@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([command for command in HARMLESS if not command.startswith(("exec ", "cd "))]),
    st.sampled_from(HARMFUL),
    st.sampled_from(["\n", " &&\n", " ||\n", "\n\n# and then\n"]),
    st.booleans(),
)
def test_a_harmless_neighbour_changes_nothing(harmless, harmful, joint, first):
    pair = (harmful, harmless) if first else (harmless, harmful)
    if "<<" in pair[0] or pair[0].endswith("&") or "#" in pair[0]:
        joint = "\n"
    assert verdict(joint.join(pair)) != "allow"


BENIGN = {
    "spaces": lambda c: f"  {c}  ",
    "true before": lambda c: f"true\n{c}",
    "true after": lambda c: f"{c}\ntrue",
    "comment": lambda c: f"# look\n{c}",
    "braces": lambda c: f"{{\n{c}\n}}",
    "subshell": lambda c: f"(\n{c}\n)",
    "sh -c": lambda c: f"bash -c {shlex.quote(c)}",
}


@pytest.mark.parametrize("name", BENIGN)
def test_harmless_commands_are_not_refused_under_another_form(name):
    refused = [command for command in HARMLESS if verdict(BENIGN[name](command)) == "refuse"]
    assert refused == []


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([command for command in HARMLESS if "\n" not in command]), st.integers(0, 10))
def test_nor_with_a_plain_word_in_quotes(command, number):
    words = command.split(" ")
    word = words[number % len(words)]
    if (
        word.isalpha()
        and not set(command) & set("'\"#")
        and word not in ("in", "do", "done", "for", "if", "then", "while")
    ):
        words[number % len(words)] = f"'{word}'"
        if verdict(command) == "allow":
            assert verdict(" ".join(words)) != "refuse"


# --- any text ---


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200) | st.text(alphabet="rm -f/~$(){}[]`'\"\\;&|<>=#!*?\n ", max_size=80))
@example("")
@example("\0")
@example("\ud800")
@example("\ue001 -rf /")
@example("${")
@example("<<A <<'B'\n$(\nA")
@example("a[$(")
@example("case x in (")
def test_any_text_gets_the_same_decision_twice(text):
    first = judge(text, folder=FOLDER)
    assert first.verdict in VERDICTS
    assert bool(first.reasons) == (first.verdict != "allow")
    assert judge(text, folder=FOLDER) == first


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_bytes_read_as_text_are_judged_too(data):
    assert judge(data.decode("latin-1"), folder=FOLDER).verdict in VERDICTS


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "ls; " * 25_000,
        "$(" * 5_000,
        "(" * 10_000,
        "{" * 10_000 + "}" * 10_000,
        "`" * 9_999,
        "'" * 9_999,
        "if true; then " * 2_000,
        "while true; do " * 500 + "done " * 500,
        "echo " + "{a,b}" * 40,
        "echo " + "{1..9}" * 12,
        "x=a; " + "x=$x$x; " * 200 + "echo $x",
        "f() { f; f; }; f",
        "f() { g; g; }; g() { h; h; }; h() { i; i; }; i() { ls; ls; }; " + "f; " * 50,
        "for a in {1..9}; do for b in {1..9}; do for c in {1..9}; do for d in {1..9}; do for e in {1..9}; do ls $a$b$c$d$e; done; done; done; done; done",
        "eval " * 200 + "ls",
        "sh -c " + "'" * 50,
        "cat <<A\n" * 200,
        "a|" * 5_000 + "b",
        "a && " * 3_000 + "b",
        "[[ " + "( " * 500,
        "echo $(( " + "(1+" * 300,
        "python -c '" + "(" * 5_000 + "'",
        "awk '" + "/a" * 5_000 + "'",
        "sed '" + "s/" * 5_000 + "'",
        "grep '" + "[" * 5_000 + "' a",
        "cat /" + "[" * 300 + "*" * 300,
    ],
    ids=range(27),
)
def test_large_and_deep_texts_are_judged_in_bounded_time(text):
    started = time.process_time()
    assert judge(text, folder=FOLDER).verdict in VERDICTS
    assert time.process_time() - started < 3


def test_a_command_takes_a_few_milliseconds():
    started = time.process_time()
    for entry in ENTRIES:
        verdict(entry["command"])
    assert (time.process_time() - started) / len(ENTRIES) < 0.01
