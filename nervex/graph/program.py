"""A program of bare operator calls: what a recorded function becomes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree


class TraceError(Exception):
    """The function cannot be recorded; the text says why, for the line that is logged before going on in eager mode."""


class Ref:
    """
    Overview:
        A value of the program: an input, a constant tensor or the result of a call. Compared by identity.
    """

    __slots__ = ('fixed', 'tensor')

    def __init__(self, tensor: Any = None, fixed: bool = False) -> None:
        self.tensor = tensor  # the constant; None for inputs and results
        self.fixed = fixed  # a constant whose numbers never change, unlike those of a weight


@dataclass
class Call:
    """One operator call; ``args`` and ``kwargs`` hold Refs where the program's values go."""

    target: Any  # an OpOverload, or operator.getitem
    args: tuple
    kwargs: dict
    result: Ref

    def __post_init__(self) -> None:
        schema = getattr(self.target, '_schema', None)
        self.name = schema.name.split('::')[-1] if schema else 'getitem'
        self.mutates = bool(schema and schema.is_mutable)  # writes into one of its arguments
        self.is_view = not self.mutates and (schema is None or any(r.alias_info is not None for r in schema.returns))
        self.is_random = bool(schema and torch.Tag.nondeterministic_seeded in self.target.tags)

    def refs(self) -> list[Ref]:
        """The values it takes."""
        return [leaf for leaf in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Ref)]

    def written(self) -> list[Ref]:
        """The values it writes into."""
        if not self.mutates:
            return []
        given = {a.name: v for a, v in zip(self.target._schema.arguments, self.args)} | self.kwargs
        names = [a.name for a in self.target._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        return [r for n in names for r in pytree.tree_leaves(given.get(n)) if isinstance(r, Ref)]


@dataclass
class Program:
    """Inputs, operator calls in order, outputs."""

    inputs: list[Ref]
    calls: list[Call]
    outputs: list[Ref]
    generators: list[torch.Generator] = field(default_factory=list)

    @property
    def constants(self) -> list[Ref]:
        """Constant tensors that calls or outputs use, in order of use."""
        used = [ref for call in self.calls for ref in call.refs()] + self.outputs
        return list({id(ref): ref for ref in used if ref.tensor is not None}.values())

    def run(self, inputs: Sequence[torch.Tensor]) -> dict[int, Any]:
        """Execute call by call; returns the value of every Ref by its id."""
        values: dict[int, Any] = {id(ref): ref.tensor for ref in self.constants}
        values.update({id(ref): x for ref, x in zip(self.inputs, inputs)})
        for call in self.calls:
            args, kwargs = with_values((call.args, call.kwargs), values)
            values[id(call.result)] = call.target(*args, **kwargs)
        return values


def with_values(structure: Any, values: dict[int, Any]) -> Any:
    """Arguments with every Ref replaced by its constant or its value."""

    def value(x: Any) -> Any:
        if not isinstance(x, Ref):
            return x
        return values[id(x)] if x.tensor is None else x.tensor

    return pytree.tree_map(value, structure)
