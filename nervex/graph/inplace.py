"""Let the last operators of a backward pass write into the flat gradient instead of joining their results."""

from collections.abc import Callable
from typing import Any

import torch

from nervex.graph.trace import Call, Program, Ref, alive, same_rounding, with_values


def write_gradient_in_place(program: Program, values: dict[int, Any]) -> Program:
    """
    Overview:
        Where the first output is a ``cat``, replace it by one buffer that lives as long as the program, and let the
        operators that make its pieces write there. The buffer is overwritten by the next run.
    Arguments:
        - values (:obj:`dict[int, Any]`): an example of every value by the id of its Ref, as ``Program.run`` gives
    """
    made = {id(call.result): call for call in program.calls}
    joined = program.outputs[0]
    cat = made.get(id(joined))
    if cat is None or cat.name != 'cat' or len(cat.args) > 1 or any(o is joined for o in program.outputs[1:]):
        return program
    buffer = torch.empty_like(values[id(joined)])
    outputs = {id(o) for o in program.outputs}
    replaced: dict[int, Call | None] = {id(cat): None}
    copies = []
    offset = 0
    for piece in cat.args[0]:
        source, length = _before_views(piece, made, values), values[id(piece)].numel()
        place = Ref(buffer[offset : offset + length].view(values[id(source)].shape))
        offset += length
        producer = made.get(id(source))
        free = producer is not None and id(source) not in outputs and id(producer) not in replaced
        writing = _writing(producer, place, values) if free else None
        if writing is None:
            copies.append(Call(torch.ops.aten.copy_.default, (place, source), {}, Ref()))
        else:
            replaced[id(producer)] = writing
    calls = [replaced.get(id(call), call) for call in program.calls]
    kept = [call for call in calls if call is not None] + copies
    new_outputs = [Ref(buffer), *program.outputs[1:]]
    return Program(program.inputs, alive(kept, new_outputs), new_outputs, program.generators)


def _before_views(piece: Ref, made: dict[int, Call], values: dict[int, Any]) -> Ref:
    """The value that a chain of mere changes of shape starts from."""
    while True:
        call = made.get(id(piece))
        if call is None or call.name not in ('view', '_unsafe_view', 'reshape') or not isinstance(call.args[0], Ref):
            return piece
        before = values[id(call.args[0])]
        if not before.is_contiguous() or before.data_ptr() != values[id(piece)].data_ptr():
            return piece
        piece = call.args[0]


def _writing(call: Call, place: Ref, values: dict[int, Any]) -> Call | None:
    """
    Overview:
        The same call with the result written into ``place``, if the operator has such a form and gives the same bits
        there: matrix products of some libraries round differently in memory that is aligned differently.
    """
    if call.mutates or call.is_view or call.is_random or not hasattr(call.target, 'overloadpacket'):
        return None
    wanted = [(a.name, str(a.type)) for a in call.target._schema.arguments]
    packet = call.target.overloadpacket
    for name in packet.overloads():
        schema = getattr(packet, name)._schema
        own = [(a.name, str(a.type)) for a in schema.arguments]
        if own[:-1] == wanted and schema.arguments[-1].is_out and len(schema.returns) == 1:
            written = Call(getattr(packet, name), call.args, {**call.kwargs, 'out': place}, call.result)
            given = with_values((call.args, call.kwargs), values)
            same = same_rounding(_result_in(place, written.target), _result_in(None, call.target), given)
            return written if same else None
    return None


def _result_in(place: Ref | None, target: Any) -> Callable:
    out = {} if place is None else {'out': place.tensor}
    return lambda given: target(*given[0], **given[1], **out)
