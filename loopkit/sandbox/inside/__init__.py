"""What runs on the other side: in the zygote, in the warden and in the program's own process.

Standard library only, and imported nowhere in the host process but for constants: the zygote loads these modules into
a clean interpreter, from which every program is forked.
"""

NOBODY = 65534
"""The user that programs run as when the host is root."""
NONE = "none"
"""What a protection is called that is not in force."""
