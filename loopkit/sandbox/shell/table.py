"""What programs do with their arguments, as data.

A row reads `names | operands | options | traits`, the last two of which may be left out. Operands are the roles of
the arguments that are no options, in order; a role with a star takes all that are left, and one role may follow it
for the last argument. Options are those with a value, `-o=role` or `--output=role`; all others are flags. Roles:

    text     nothing comes of it          read     a path it reads          write   a path it writes
    delete   a path it deletes            move     a path that moves away   enter   a path it works in
    own      an argument of the folder's programs: text, unless it is a path elsewhere
    value    the text of an option: as `own`, lest an option that is not as we think hides a path
    pattern  a text, unless one of the options that stand for it was given (-e, -f)
    code     a command for a shell
    inline   a program in a language that is not read here

Traits: `out:name`, `out:some` or `out:pass` say what it prints (a word, paths, what came in); `kind:reason` adds an
effect whatever the arguments are, weighed by VERDICTS. What a row with `network` prints or writes comes from there.
"""

import functools
import re
from dataclasses import dataclass

from .decisions import Verdict
from .places import MARKS

VERDICTS: dict[str, Verdict] = {
    "network": "ask", "install": "ask", "discard": "ask", "signal": "ask", "unknown": "ask", "publish": "refuse",
    "privilege": "refuse", "persist": "refuse", "system": "refuse", "exhaust": "refuse", "secret": "ask",
}  # fmt: skip

_ROWS = """
# Printing, looking.
cat expand unexpand | read* | | out:pass
rev | read*
tac | read* | -s=text
nl | read* | -b=text -s=text -v=text -w=text -i=text -h=text -f=text -d=text -n=text
fold fmt | read* | -w=text
column | read* | -s=text -o=text -c=text -N=text
head tail | read* | -n=text -c=text --lines=text --bytes=text --pid=text | out:pass
less more | read* | -k=read -o=write -O=write --log-file=write -P=text -x=text -j=text --tag-file=read | out:pass
zcat bzcat xzcat zless | read*
strings | read* | -n=text -e=text -t=text
od hexdump | read* | -N=text -A=text -t=text -j=text -n=text -e=text
pr | read* | -l=text -w=text -h=text
xxd | read write | -l=text -c=text -s=text -g=text -o=text
ls dir vdir | read* | -I=text -w=text -T=text --ignore=text --hide=text
tree | read* | -I=text -L=text -P=text -o=write
file | read* | -f=read -m=read -F=text -P=text | out:name
stat | read* | -c=text -f=flag --format=text --printf=text | out:name
du | read* | -d=text --max-depth=text -t=text -B=text -X=read --exclude=text --exclude-from=read --files0-from=read | out:name
wc | read* | --files0-from=read | out:name
md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum md5 shasum | read* | -a=text | out:name
readelf objdump nm size ldd c++filt addr2line | read* | -j=text -e=read | out:name
cmp | read* | -n=text -i=text
comm | read* | --output-delimiter=text
diff diff3 colordiff wdiff | read* | -U=text -C=text -I=text -x=text -X=read -L=text -W=text -F=text --label=text --color=text --exclude=text --output=write --to-file=read --from-file=read
sdiff | read* | -w=text -o=write
join | read* | -1=text -2=text -j=text -t=text -o=text -e=text -a=text -v=text
paste | read* | -d=text
sort | read* | -k=text -t=text -o=write --output=write -S=text -T=write --temporary-directory=write --parallel=text --compress-program=code --files0-from=read --key=text | out:pass
uniq | read write | -f=text -s=text -w=text | out:pass
cut | read* | -d=text -f=text -c=text -b=text --output-delimiter=text
shuf | read* | -n=text -i=text -o=write --output=write --random-source=read | out:pass
tr | text*
tee | write* | | out:pass
sponge | write | | out:pass
grep egrep fgrep zgrep | pattern read* | -e=text -f=read -A=text -B=text -C=text -m=text -d=text -D=text --regexp=text --file=read --include=text --exclude=text --exclude-dir=text --exclude-from=read --color=text --colour=text --max-count=text --context=text --label=text | out:some
rg | pattern read* | -e=text -f=read -g=text --glob=text --iglob=text -t=text -T=text -A=text -B=text -C=text -m=text -j=text -r=text -M=text --type=text --pre=code --hostname-bin=code --ignore-file=read --sort=text --max-depth=text -d=text --pager=code | out:some
ag ack | text read* | -A=text -B=text -C=text -m=text -G=text --pager=code | out:some
jq gojq | pattern read* | -f=read --from-file=read --indent=text -L=read --slurpfile=text --rawfile=text
yq | pattern read* | -o=text -p=text
readlink realpath | read* | --relative-to=read --relative-base=read | out:args
dirname | text* | | out:name
basename | text* | -s=text | out:name
which whereis type | text* | | out:name
date | text* | -d=text -r=read -f=read -s=text | out:name
cal nproc uname arch whoami id groups hostname tty uptime lscpu free df locale getconf sleep usleep seq factor expr true false test [ numfmt logname users vmstat iostat lsblk lsb_release tput clear reset stty dircolors : sync getopt times ulimit shopt wait fg bg disown dirs break continue return exit suspend logout umask pgrep pidof uuidgen ps lsof ss netstat pstree top htop lsmem | text* | | out:name
bc | read* | -e=text -f=read | out:name
gettext man apropos whatis info tldr help | text* | -P=code -H=code --pager=code --html=code -C=read
yes | text* | | out:endless

# Making, copying, moving.
mkdir rmdir mkfifo | write* | -m=text --mode=text
touch | write* | -r=read -d=text -t=text --reference=read --date=text
rm unlink | delete* | --interactive=text
shred | delete* | -n=text -s=text --random-source=read
cp | read* write | -t=write --target-directory=write -S=text --suffix=text --backup=text --no-preserve=text
mv | move* write | -t=write --target-directory=write -S=text --suffix=text
install | read* write | -m=text -o=text -g=text -t=write --target-directory=write -S=text --mode=text --strip-program=code
ditto | read* write
truncate | write* | -s=text -r=read --size=text
fallocate | write* | -l=text -o=text
split | read write | -l=text -b=text -n=text -a=text -C=text --filter=code --additional-suffix=text -t=text
csplit | read text* | -f=write -n=text -b=text
patch | write* | -i=read -d=enter -o=write -p=text -B=text -r=write --input=read --directory=enter --output=write --reject-file=write
dos2unix unix2dos | write*
gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 pigz lzma | write* | -S=text -o=write -T=text -b=text --suffix=text -M=text -D=read
zip | write read* | -x=text -i=text -b=write -TT=code --unzip-command=code -P=text -O=write
unzip | read text* | -d=write -x=text -P=text -O=text
7z 7za 7zr | text write read*
cpio | text* | -D=enter -F=write -I=read -O=write -R=text | unknown:unpacks what it is given
ar ranlib strip ld as | write* | -o=write
setfacl chattr | text write*
iconv | read* | -f=text -t=text -o=write --output=write
base64 base32 uuencode | read* | -w=text --wrap=text
pandoc | read* | -o=write --output=write -f=text -t=text --filter=own -F=own -L=own --template=read -H=read -B=read -A=read -c=text --extract-media=write --pdf-engine=text -V=text -M=text --metadata-file=read --data-dir=read
convert magick montage ffmpeg sox pdftotext dot gs inkscape | own* | -o=write -i=read
pdflatex xelatex lualatex latexmk bibtex | own* | -output-directory=write -outdir=write

# Programs that work on the folder or run what is in it.
pytest py.test tox nox unittest coverage behave | own* | -n=text -k=text -m=text -p=text -c=read -o=own --cov-report=own -W=text --tb=text --basetemp=write --rootdir=read --junitxml=write
ruff black isort mypy pyright flake8 pylint bandit pyflakes pycodestyle autopep8 yapf pyupgrade vulture radon interrogate pydocstyle pyre basedpyright ty pre-commit | own* | --config=read -c=text --select=text --ignore=text --line-length=text -l=text -t=text
eslint prettier tsc jest vitest mocha ava tape rollup webpack esbuild stylelint biome standard ts-node tsx | own* | -c=read --config=read -o=write --outfile=write --outdir=write --outDir=write -t=text
gcc g++ cc c++ clang clang++ tcc gfortran rustc ghc ocamlc javac kotlinc scalac nasm fpc swiftc protoc | own* | -o=write -I=read -L=read -D=text -x=text -W=text -include=read -d=write --out-dir=write --emit=text --edition=text -cp=read -classpath=read --target=text -C=text -wrapper=code -B=read -fplugin=read -T=read -isystem=read
java swift dotnet | own* | -e=inline -cp=read -jar=own -classpath=read
rustfmt clang-format clang-tidy gofmt shfmt shellcheck yamllint jsonlint markdownlint cloc scc tokei ctags cscope gcov lcov gcovr pkg-config codespell vale typos hadolint taplo checkmake xmllint csvcut csvgrep csvlook csvstat csvsort xsv mlr cypress playwright | own* | -o=write -f=own --format=text -i=text -s=text -x=text
cmake ninja meson ctest | own* | -S=enter -B=write -D=text -G=text -C=enter -E=cmake -R=text -j=text -f=read -P=own --build=write --install=install -L=text
papermill nbconvert jupyter-nbconvert jupyter-execute sphinx-build doxygen typedoc jsdoc | own* | -p=text --output=own --to=text -b=text
loopkit | own*
sloccount | read*

# Asked about, as they reach elsewhere or change the machine.
curl curlie | own* | -o=write --output=write -d=own --data=own --data-binary=own --data-urlencode=own --data-ascii=own --json=own -T=read --upload-file=read -F=own --form=own -H=own --header=own -b=own --cookie=own -c=write --cookie-jar=write -K=read --config=read -D=write --dump-header=write --cacert=read --cert=read -E=read --key=read --output-dir=write --trace=write --trace-ascii=write --stderr=write --unix-socket=write --netrc-file=read --libcurl=write -X=text -u=text -A=text -w=text -m=text -x=text -e=text -r=text -y=text -Y=text -C=text -z=text | network:reaches the network
wget wget2 | own* | -O=write --output-document=write -o=write --output-file=write -a=write -P=write --directory-prefix=write --post-file=read --body-file=read --header=own -i=read --input-file=read --load-cookies=read --save-cookies=write --use-askpass=code --warc-file=write --config=read -U=text -T=text -t=text -e=text -A=text -R=text -D=text -l=text -w=text | network:reaches the network
openssl | own* | -in=read -out=write -keyout=write -key=read -inkey=read -pass=text -config=read -CAfile=read -signkey=read | unknown:works with keys or connections
rsync | read* write | -e=code --rsh=code --rsync-path=code --exclude=text --include=text --filter=text -f=text --exclude-from=read --files-from=read --log-file=write --backup-dir=write --link-dest=read --compare-dest=read --bwlimit=text --password-file=read --partial-dir=write -T=write
nc ncat netcat socat ssh scp rcp autossh sshpass ping ping6 traceroute tracepath mtr dig host nslookup whois drill resolvectl arping fping nmap masscan telnet ftp tftp lftp sftp rlogin rsh mosh aria2c axel httpie http https xh httpx w3m lynx links elinks youtube-dl yt-dlp speedtest iperf iperf3 ab wrk hey siege websocat grpcurl ngrok cloudflared tailscale ssh-copy-id ssh-keyscan sshfs rclone gsutil s3cmd mail sendmail mailx mutt msmtp swaks xdg-open open browser-sync serve http-server live-server tcpdump wireshark tshark | own* | | network:reaches the network
gh glab hub heroku vercel netlify fly flyctl aws gcloud az doctl terraform tofu pulumi ansible ansible-playbook kubectl helm k9s minikube kind vault consul nomad firebase wrangler | text* | | network:acts on a service elsewhere
docker podman nerdctl buildah docker-compose podman-compose lxc vagrant VBoxManage qemu-system-x86_64 virsh | text* | | unknown:works with containers or machines beyond the sandbox
psql mysql mariadb mongo mongosh redis-cli cqlsh influx clickhouse-client | text* | | network:works on a data base server
twine | text* | | publish:publishes a package
npx bunx pnpx uvx pipx dlx | text* | | network:downloads a package and runs it
mamba micromamba rye gem bundle bundler composer cpan cpanm luarocks opam nvm pyenv rbenv asdf rustup sdkman easy_install nix nix-env nix-shell guix brew port | text* | | install:may download and install packages
apt apt-get apt-cache dpkg-query aptitude yum dnf apk pacman zypper snap flatpak dpkg rpm emerge | text* | | system:changes the packages of the system
gpg gpg2 pass security secret-tool keyctl age ssh-add ssh-agent ssh-keygen | text* | | secret:works with keys
history | text* | | unknown:works with the history of the shell
jupyter jupyter-lab jupyter-notebook mkdocs streamlit flask uvicorn gunicorn screen tmux dtach zellij expect autoexpect | text* | | unknown:starts a session or a server
dconf gsettings xdg-mime defaults launchctl scutil pmset networksetup csrutil spctl | text* | | system:changes the settings of the system
strace ltrace gdb lldb perf bpftrace ptrace | text* | | unknown:looks into or changes other processes
pkill skill snice renice xkill | text* | | signal:ends processes by name, perhaps others' too
killall killall5 | text* | | exhaust:ends all processes of a name, whoever started them

# Of the machine.
sudo su doas pkexec runuser gosu su-exec sudoedit visudo newgrp sg chroot setpriv capsh unshare nsenter setcap bwrap firejail machinectl dzdo pfexec | text* | | privilege:gains the rights of another
shutdown reboot halt poweroff init telinit kexec | text* | | system:stops the machine
mkfs fdisk sfdisk cfdisk gdisk sgdisk parted wipefs blkdiscard mkswap swapon swapoff mount umount losetup cryptsetup dmsetup lvm pvcreate pvremove vgcreate vgremove lvcreate lvremove mdadm hdparm nvme sdparm badblocks zpool zfs btrfs debugfs tune2fs resize2fs e2fsck fsck dump2fs fsfreeze eject efibootmgr grub-install update-grub flashrom mkinitramfs fstrim mke2fs mkdosfs mkntfs | text* | | system:changes disks
systemctl service rc-service rc-update chkconfig initctl update-rc.d sv s6-svc loginctl hostnamectl timedatectl localectl networkctl nmcli sysctl insmod rmmod modprobe depmod iptables ip6tables nft ufw firewall-cmd iptables-restore ebtables ipset setenforce semanage setsebool auditctl aa-disable aa-complain aa-teardown apparmor_parser ip ifconfig route iwconfig brctl tc ethtool useradd userdel usermod groupadd groupdel groupmod gpasswd adduser deluser addgroup passwd chpasswd chsh chfn chage vipw ldconfig update-alternatives dpkg-reconfigure hwclock rfkill swaplabel journalctl dmesg wall cpupower udevadm update-ca-certificates trust | text* | | system:changes the settings of the system
crontab at batch atd anacron fcron systemd-run atq atrm incrontab | text* | | persist:makes something run later
mknod | text* | | system:makes a device
"""


NEVER = re.compile(r"(?!)")
_PACKAGES = re.compile(
    r"(list|show|search|policy|info|depends|-l|-s|-L|-qa|-qi|-ql|--get-selections)"
    r"( (--installed|--upgradable|-?[\w.:*+][\w.:*+=-]*))*"
)
# Uses of programs that only look, where a row says more: the arguments, joined.
LOOKS: dict[str, re.Pattern[str]] = {
    "ip": re.compile(r"(-\w+ )*(a|addr|address|r|route|l|link|n|neigh)( (show|list|ls)( \w+)?)?"),
    "ifconfig": re.compile(r"(-a|\w+)?"), "mount": re.compile(r""), "hostnamectl": re.compile(r"(status)?"),
    "apt": _PACKAGES, "apt-cache": _PACKAGES, "dpkg": _PACKAGES, "dpkg-query": _PACKAGES, "rpm": _PACKAGES,
    "brew": _PACKAGES, "gem": _PACKAGES, "conda": re.compile(r"(list|info|env list)\b[\w .-]*"),
    "rustup": re.compile(r"(show|toolchain list)"), "pyenv": re.compile(r"(version|versions|which \w+)"),
    "nvm": re.compile(r"(ls|current)"), "kill": re.compile(r"-[lL0]\b.*"), "openssl": re.compile(r"rand -\w+ \d+|version"),
    "history": re.compile(r"\d*"), "mkdocs": re.compile(r"build( [\w-]+)*"),
    "jupyter": re.compile(r"(nbconvert|execute)( (?!/|\S*\.\./)[\w./-]+)*"),
}  # fmt: skip


@dataclass
class Spec:
    """One row, ready for use."""

    operands: list[str]
    options: dict[str, str]
    traits: dict[str, str]
    last: str | None = None

    def sort(self, args: list[str]) -> list[tuple[str, str]]:
        """The arguments with their roles; `flag` for options without a value."""
        found: list[tuple[str, str]] = []
        operands: list[str] = []
        todo = list(args)
        while todo:
            arg = todo.pop(0)
            if arg == "--":
                operands += todo
                break
            number = arg[1:2].isdigit() and arg[:2] not in self.options
            if len(arg) < 2 or arg[0] != "-" or number:  # -5 is a number, and with some a number of lines
                operands += [] if number and arg[1:].isdigit() else [arg]
            elif arg in self.options:
                found += [("flag", arg), (_as_value(self.options[arg]), todo.pop(0) if todo else "")]
            elif arg.startswith("--"):
                found += self._long(arg, todo)
            else:
                found += self._short(arg, todo)
        return found + self._operands(operands, {value for role, value in found if role == "flag"})

    def _long(self, arg: str, todo: list[str]) -> list[tuple[str, str]]:
        name, equals, given = arg.partition("=")
        matches = [option for option in self.options if option.startswith(name)]  # GNU takes abbreviations
        role = self.options[name] if name in self.options else self.options[matches[0]] if matches else None
        if role is None:
            return [("flag", name), *([("own", given)] if equals else [])]
        if not equals:
            given = todo.pop(0) if todo else ""
        return [("flag", matches[0]), (_as_value(role), given)]

    def _short(self, arg: str, todo: list[str]) -> list[tuple[str, str]]:
        name, equals, given = arg.partition("=")
        if name in self.options and equals:
            return [("flag", name), (_as_value(self.options[name]), given)]
        found = []
        for at in range(1, len(arg)):
            option = f"-{arg[at]}"
            found.append(("flag", option))
            role = self.options.get(option)
            if role is not None:
                rest = arg[at + 1 :]
                if not rest:
                    rest = todo.pop(0) if todo else ""
                return [*found, (_as_value(role), rest)]
            if arg[at] in "/=~" or MARKS.match(
                arg[at]
            ):  # no cluster of flags: a value of an option we do not know
                return [*found, ("own", arg[at:].lstrip("="))]
        return found

    def _operands(self, operands: list[str], flags: set[str]) -> list[tuple[str, str]]:
        roles, found = list(self.operands), []
        if roles[:1] == ["pattern"]:
            stands_for = {"-e", "-f", "--regexp", "--file", "--from-file"} & flags
            roles[:1] = [] if stands_for else ["text"]
        elsewhere = {"-t", "--target-directory"} & flags and self.last == "write"
        last = None if elsewhere else self.last
        end = operands.pop() if last and len(operands) > 1 else None
        for operand in operands:
            role = roles[0] if roles else self.operands[-1]
            if not role.endswith("*") and len(roles) > 1:
                roles.pop(0)
            found.append((role.rstrip("*"), operand))
        if end is not None:
            found.append((last, end))
        return found


def spec(operands: str, options: str = "") -> Spec:
    """A row of one's own."""
    return _spec(operands.split(), options.split(), "")


def _as_value(role: str) -> str:
    return "value" if role == "text" else role


@functools.cache
def table() -> dict[str, Spec]:
    """The rows by the names of their programs."""
    rows: dict[str, Spec] = {}
    for line in _ROWS.splitlines():
        if not line or line.startswith("#"):
            continue
        names, operands, options, traits, *_ = [*(cell.strip() for cell in line.split("|")), "", ""]
        rows.update(dict.fromkeys(names.split(), _spec(operands.split(), options.split(), traits)))
    return rows


def _spec(operands: list[str], options: list[str], traits: str) -> Spec:
    last = operands.pop() if len(operands) > 1 and operands[-2].endswith("*") else None
    pairs = dict(option.split("=") for option in options)
    found = dict([traits.split(":", 1)]) if traits else {}
    return Spec(operands=operands, options=pairs, traits=found, last=last)
