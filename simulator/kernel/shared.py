"""One state for all compiled functions, passed by address instead of by value.

Numba passes a named tuple by value: `Sim` is 2 kB, and copying it at each call took most of a run.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.core.imputils import impl_ret_borrowed, lower_builtin, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, register_model, type_callable

T = TypeVar("T")


def shared(fields: T) -> T:
    """Return the named tuple's address, valid until the caller returns; plain Python has it
    anyway.
    """
    return fields


class Shared(types.Type):
    """Numba type of the address of a named tuple whose fields are never replaced."""

    def __init__(self, fields: types.NamedTuple) -> None:
        self.fields = fields
        digest = hashlib.sha256(str(fields).encode()).hexdigest()[:8]
        super().__init__(f"Shared({digest})")


@register_model(Shared)
class _Pointer(PrimitiveModel):
    def __init__(self, models: Any, own: Shared) -> None:
        super().__init__(models, own, models.lookup(own.fields).get_value_type().as_pointer())


@type_callable(shared)
def _typed(context: Any) -> Any:
    return lambda fields: Shared(fields) if isinstance(fields, types.NamedTuple) else None


@lower_builtin(shared, types.NamedTuple)
def _put(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
    return cgutils.alloca_once_value(builder, values[0])


@infer_getattr
class _Fields(AttributeTemplate):
    key = Shared

    def generic_resolve(self, own: Shared, name: str) -> Any:  # type: ignore[override]
        names = own.fields.fields
        return own.fields[names.index(name)] if name in names else None


@lower_getattr_generic(Shared)
def _read(context: Any, builder: ir.IRBuilder, own: Shared, where: Any, name: str) -> Any:
    at = own.fields.fields.index(name)
    value = builder.load(cgutils.gep_inbounds(builder, where, 0, at))
    return impl_ret_borrowed(context, builder, own.fields[at], value)
