"""Functions of the C library, by the C part of `ctypes`: the rest of it takes a step 0.3 MiB."""

from __future__ import annotations

import os
from _ctypes import (
    FUNCFLAG_CDECL,
    FUNCFLAG_USE_ERRNO,
    Array,
    CFuncPtr,
    _SimpleCData,
    dlopen,
    get_errno,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class CInt(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "i"


class Char(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "c"


class Size(_SimpleCData):  # type: ignore[type-arg]
    """An unsigned long; an address too."""

    _type_ = "L"


class _Function(CFuncPtr):
    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO
    _restype_ = CInt


class _Library:
    """The libraries that are linked into this process."""

    _handle = dlopen(None, os.RTLD_NOW)  # type: ignore[arg-type]


def function(name: str, *types: type) -> Callable[..., int]:
    """Return a function of the library, which returns an int; no `types`: ints and bytes.

    Raises AttributeError where the library lacks it.
    """
    call = _Function((name, _Library))  # type: ignore[arg-type]
    if types:
        call.argtypes = types
    return call


def in_memory(content: bytes) -> Array[Char]:
    """Return a copy whose address `_ctypes.addressof` gives, as long as it is held."""
    fields = {"_type_": Char, "_length_": len(content)}
    return type("Bytes", (Array,), fields).from_buffer_copy(content)  # type: ignore[attr-defined, no-any-return]


def check(result: int) -> None:
    """Raise OSError for a call that failed."""
    if result != 0:
        number = get_errno()
        raise OSError(number, os.strerror(number))
