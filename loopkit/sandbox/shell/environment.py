"""Variables that the programs after them read: some name a command, a file to run, or a place of programs."""

import re

from .places import ANYTHING
from .programs import own, script
from .state import above
from .walking import Shell

_COMMANDS = {
    "PROMPT_COMMAND", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_PAGER", "PAGER", "MANPAGER", "EDITOR", "VISUAL",
    "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS",
    "LESSOPEN", "LESSCLOSE", "BROWSER", "RSYNC_RSH", "CC", "CXX", "LD", "AR", "GIT_PROXY_COMMAND",
    "FZF_DEFAULT_COMMAND", "FCEDIT", "HGEDITOR", "SVN_EDITOR", "RUSTC_WRAPPER", "TAR_RSH",
}  # fmt: skip
_RISKY = re.compile(
    r"LD_\w+|DYLD_\w+|PYTHON(STARTUP|HOME|BREAKPOINT|INSPECT|EXECUTABLE|USERBASE)|PERL5?(LIB|OPT|DB)|PERL5(LIB|OPT|DB)|RUBY(OPT|LIB)"
    r"|NODE_OPTIONS|NODE_TLS_\w+|_?JAVA_(TOOL_)?OPTIONS|GIT_CONFIG\w*|GIT_EXEC_PATH|GIT_TEMPLATE_DIR|GIT_DIR|GIT_WORK_TREE|SHELLOPTS|BASHOPTS"
    r"|HIST\w+|PIP_\w+|UV_\w*INDEX\w*|NPM_CONFIG_\w+|npm_config_\w+|MAKEFLAGS|MFLAGS|MAKEFILES|GIT_SSL_NO_VERIFY|\w*_PROXY|\w*_proxy"
    r"|BASH_FUNC\w*|GCONV_PATH|TERMINFO|OPENSSL_CONF|GIT_ATTR\w*|DOCKER_HOST|KUBECONFIG|AWS_\w+|RUSTFLAGS|CARGO_\w+|GOFLAGS|GOPROXY|TAR_OPTIONS|GREP_OPTIONS|XDG_CONFIG_HOME|ZDOTDIR|INPUTRC|LOCPATH|NLSPATH|CLASSPATH_PREFIX"
)


_INSTALLED = ((".venv", "bin"), ("venv", "bin"), ("node_modules", ".bin"))


def assigned(shell: Shell, name: str, value: str) -> None:
    """What it means that a variable takes a value: some are read by the programs that run after."""
    if name in ("BASH_ENV", "ENV") and value:
        script(shell, value, "sh", [], "")
        shell.note("obscure", name, "ask", f"has each shell run the file in {name}")
    elif name in _COMMANDS:
        shell.fork().code(value)
    elif name in ("PS4", "PS1", "PS0", "PS2"):
        shell.counted_with_value(value)
    elif name == "PATH":
        for part in value.split(":"):
            place = shell.place(part or ".")
            scratch = place.base == "root" and str(place).startswith(shell.shared.policy.scratch)
            installed = (place.base in ("root", "home") and not scratch) or place.parts[-2:] in _INSTALLED
            if ANYTHING.search(part) or not installed:
                shell.note("obscure", part, "ask", "looks for programs where others may have put them")
    elif name in ("PYTHONPATH", "NODE_PATH", "CLASSPATH", "GOPATH"):
        for part in value.split(":"):
            own(shell, part)
    elif _RISKY.fullmatch(name):
        shell.note("obscure", name, "ask", f"sets {name}, which changes what the programs after it do")


above.assigned = assigned
