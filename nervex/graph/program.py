"""A function of tensors as a program of bare operator calls, backward passes included."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nervex.utils import tree

_READS_DATA = "a tensor becomes a Python number in it ('if' on a tensor, .item(), float(...))"
_NO_NUMBERS = ('layout', 'device', 'pin_memory', 'memory_format', 'non_blocking')
_FILLED = {'ones_like', 'zeros_like', 'full_like', 'new_zeros', 'new_ones', 'new_full'}  # use only an argument's shape


class TraceError(Exception):
    """The function cannot be recorded; the text says why, for the line that is logged before going on in eager mode."""


class NoFormError(TraceError):
    """An operator or kind of number that the form has not: nothing for a user to mend, so that no line is logged."""


class Ref:
    """
    Overview:
        A value of a program: an input, a constant tensor or the result of a call. Compared by identity.
    """

    __slots__ = ('example', 'fixed', 'tensor')

    def __init__(self, example: Any = None, tensor: torch.Tensor | None = None, fixed: bool = False) -> None:
        self.example = example if tensor is None else tensor  # what it was when the program was recorded
        self.tensor = tensor  # the constant; None for inputs and results
        self.fixed = fixed  # a constant whose numbers never change, unlike those of a weight


class Call:
    """One operator call; ``args`` and ``kwargs`` hold Refs where the program's values go."""

    def __init__(self, target: Any, args: tuple, kwargs: dict, result: Ref) -> None:
        self.target, self.args, self.kwargs, self.result = target, args, kwargs, result
        schema = getattr(target, '_schema', None)  # None: operator.getitem, a part of several results
        self.name = schema.name.split('::')[-1] if schema else 'getitem'
        self.mutates = bool(schema and schema.is_mutable)  # writes into one of its arguments
        self.is_view = not self.mutates and (schema is None or any(r.alias_info is not None for r in schema.returns))
        self.is_random = bool(schema and torch.Tag.nondeterministic_seeded in target.tags)

    def refs(self) -> list[Ref]:
        """The values it takes."""
        return [leaf for leaf in tree.leaves([self.args, self.kwargs]) if isinstance(leaf, Ref)]

    def written(self) -> list[Ref]:
        """The values it writes into."""
        if not self.mutates:
            return []
        given = {a.name: v for a, v in zip(self.target._schema.arguments, self.args)} | self.kwargs
        names = [a.name for a in self.target._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        return [ref for name in names for ref in tree.leaves(given.get(name)) if isinstance(ref, Ref)]

    def in_order(self) -> list[Any]:
        """All arguments by place."""
        return in_order(self.target, self.args, self.kwargs)

    def filled(self, value: Callable[[Ref], Any]) -> tuple[tuple, dict]:
        """Arguments with ``value(ref)`` for every Ref."""
        args, kwargs = tree.map(lambda x: value(x) if isinstance(x, Ref) else x, [self.args, self.kwargs])
        return args, kwargs


def in_order(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Arguments of an operator by place, without those of no meaning to NumPy, and defaults at the end."""
    if not isinstance(target, torch._ops.OpOverload):
        return list(args)
    arguments, last = [], 0
    for k, argument in enumerate(target._schema.arguments):
        value = args[k] if k < len(args) else kwargs.get(argument.name, argument.default_value)
        if argument.name not in _NO_NUMBERS:
            arguments.append(_dtype_name(value))
            if k < len(args) or argument.name in kwargs:
                last = len(arguments)
    return arguments[:last]


def _dtype_name(value: Any) -> Any:
    return str(value).removeprefix('torch.') if isinstance(value, torch.dtype) else value


class Program:
    """Inputs, operator calls in order, outputs."""

    def __init__(self, inputs: list[Ref], calls: list[Call], outputs: list[Ref]) -> None:
        self.inputs, self.outputs = inputs, outputs
        needed = {id(ref) for ref in outputs}
        kept = []  # those that outputs, memory or random states depend on
        for call in reversed(calls):
            if id(call.result) in needed or call.mutates or call.is_random:
                needed.update(id(ref) for ref in call.refs())
                kept.append(call)
        self.calls = kept[::-1]

    @property
    def constants(self) -> list[Ref]:
        """Constant tensors that calls or outputs use, in order of use."""
        used = [ref for call in self.calls for ref in call.refs()] + self.outputs
        return list({id(ref): ref for ref in used if ref.tensor is not None}.values())

    @property
    def generators(self) -> list[torch.Generator]:
        """The generators that calls were given."""
        leaves = [leaf for call in self.calls for leaf in tree.leaves([call.args, call.kwargs])]
        return list({id(leaf): leaf for leaf in leaves if isinstance(leaf, torch.Generator)}.values())


def trace(
    function: Callable[..., Sequence[torch.Tensor]],
    inputs: Sequence[torch.Tensor],
    on_generator: Callable[[torch.Generator], None] = lambda generator: None,
) -> Program:
    """
    Overview:
        Run ``function(*inputs)`` once on the real tensors; the operator calls that it makes are the program, without
        those that change nothing. Parameters and other tensors that are not inputs become constants that share memory
        with the originals, so that updates in place are seen. Python numbers are recorded as they are now.
    Arguments:
        - on_generator (:obj:`Callable`): is told of every generator before it is drawn from
    """
    recorder = _Recorder(inputs, on_generator)
    try:
        with recorder:
            outputs = function(*inputs)
        with torch.no_grad():
            return _shortened(recorder.inputs, recorder.calls, [recorder.given(x) for x in outputs])
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError, AssertionError) as e:
        text = str(e).strip()
        raise TraceError(f'{text.splitlines()[0] if text else "no message"} ({type(e).__name__})') from e


class _Recorder(TorchDispatchMode):
    """Notes the calls inside the block. Every tensor seen is kept until the end, so that identities stay unique."""

    def __init__(self, inputs: Sequence[torch.Tensor], on_generator: Callable[[torch.Generator], None]) -> None:
        super().__init__()
        self._on_generator = on_generator
        self._refs: dict[int, Ref] = {}
        self._kept: list[Any] = []
        self._made: set[int] = set()  # memory of inputs and results
        self._foreign: set[int] = set()  # memory of constants
        self.calls: list[Call] = []
        self.inputs = [self._see(x) for x in inputs]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: torch would import its compiler at the first call, which takes a second."""
        return False

    def __torch_dispatch__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if not isinstance(function, torch._ops.OpOverload):
            raise TraceError(f"'{function}' is no plain operator")
        if function is torch.ops.aten._local_scalar_dense.default:
            raise TraceError(_READS_DATA)
        for leaf in tree.leaves(kwargs):
            if isinstance(leaf, torch.Generator):
                self._on_generator(leaf)
        given_args, given_kwargs = tree.map(self.given, [tuple(args), kwargs])
        result = function(*args, **kwargs)
        several = isinstance(result, (tuple, list))
        call = Call(function, given_args, given_kwargs, Ref(result) if several else self._see(result))
        _refuse_what_depends_on_data(call)
        self.calls.append(call)
        if several:
            for i, part in enumerate(result):
                if isinstance(part, torch.Tensor):
                    self.calls.append(Call(operator.getitem, (call.result, i), {}, self._see(part)))
        return result

    def given(self, item: Any) -> Any:
        """The Ref of a tensor; one from outside is a constant. Anything else as it is."""
        if not isinstance(item, torch.Tensor):
            return item
        ref = self._refs.get(id(item))
        if ref is None:
            storage = _storage(item)
            if storage in self._made:
                raise TraceError('a tensor reaches an operator by a way that cannot be seen')
            self._foreign.add(storage)
            with torch.no_grad():
                ref = self._refs[id(item)] = Ref(tensor=item.detach())
            self._kept.append(item)
        return ref

    def _see(self, item: Any) -> Ref:
        ref = Ref(item)
        if isinstance(item, torch.Tensor):
            self._refs[id(item)] = ref
            self._kept.append(item)
            storage = _storage(item)
            if storage and storage not in self._foreign:  # not a view of a constant
                self._made.add(storage)
        return ref


def _refuse_what_depends_on_data(call: Call) -> None:
    """Operators whose results have other shapes with other numbers."""
    tags = getattr(call.target, 'tags', ())
    by_data = torch.Tag.dynamic_output_shape in tags and call.name not in ('index', 'index_put', 'index_put_')
    if by_data or torch.Tag.data_dependent_output in tags:
        raise TraceError(f"the shape or the course of '{call.name}' depends on the data")
    if call.name == 'index' and any(ref.example.dtype in (torch.bool, torch.uint8) for ref in call.refs()[1:]):
        raise TraceError('it selects by a mask, so that shapes depend on the data; use torch.where')


def _storage(tensor: torch.Tensor) -> int:
    """Address of the memory; 0 where there is none."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


def _shortened(inputs: list[Ref], calls: list[Call], outputs: list[Ref]) -> Program:
    """
    Overview:
        Leave out detach, double transposes, pow by one and dead calls. What depends on constants or shapes alone is
        computed now: views of the weights, seeds of the backward pass.
    """
    written = _written(calls)
    stands_for: dict[int, Ref] = {}
    made: dict[int, Call] = {}

    def current(ref: Ref) -> Ref:
        return stands_for.get(id(ref), ref)

    for old in calls:
        call = Call(old.target, *old.filled(current), old.result)
        same = _equal_to(call, made, written)
        if same is None and isinstance(call.result.example, torch.Tensor):
            same = _as_constant(call, written)
        if same is None:
            made[id(call.result)] = call
        else:
            stands_for[id(call.result)] = same
    return Program(inputs, list(made.values()), [current(ref) for ref in outputs])


def _equal_to(call: Call, made: dict[int, Call], written: set[int]) -> Ref | None:
    """An existing value that equals the call's result in every bit, if there is one."""
    first = call.args[0] if call.args else None
    if not isinstance(first, Ref):
        return None
    if call.is_view and _same_view(first.example, call.result.example):
        return first
    if call.name == 'pow' and tuple(call.args[1:]) == (1.0,) and not {id(first), id(call.result)} & written:
        return first
    inner = made.get(id(first))
    return inner.args[0] if call.name == 't' and inner is not None and inner.name == 't' else None


def _same_view(a: Any, b: Any) -> bool:
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return False
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype


def _as_constant(call: Call, written: set[int]) -> Ref | None:
    """The result as a constant, if it is the same at every run."""
    refs, value = call.refs(), call.result.example.detach()
    if call.mutates or call.is_random:
        return None
    fixed = all(ref.fixed for ref in refs)
    if call.is_view:
        return Ref(tensor=value, fixed=fixed) if refs and all(ref.tensor is not None for ref in refs) else None
    if id(call.result) in written or not (call.name in _FILLED or fixed):
        return None
    return Ref(tensor=value, fixed=True)


def _written(calls: list[Call]) -> set[int]:
    """Ids of all values in whose memory some call writes, views included."""
    root: dict[int, int] = {}
    hit: set[int] = set()
    for call in calls:
        targets = call.written() or (call.refs()[:1] if call.is_view else [])
        if targets:
            root[id(call.result)] = root.get(id(targets[0]), id(targets[0]))
        hit.update(root.get(id(ref), id(ref)) for ref in call.written())
    return hit | {value for value, origin in root.items() if origin in hit}
