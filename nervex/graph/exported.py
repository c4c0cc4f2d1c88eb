"""A module as a file: traced by torch.export for any number of rows, then as ONNX, .pt2, or a program for NumPy."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import operator
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.export import ExportedProgram
from torch.fx import Node

from nervex.graph.program import in_order
from nervex.runtime import OPERATIONS
from nervex.utils import NervexError

# operations whose operands torch makes one kind of number, each in its way
_MIXING = ('add', 'sub', 'mul', 'div', 'pow', 'where', 'maximum', 'minimum')


class ExportError(NervexError, ValueError):
    """A module that cannot become a file, or not one of this kind; the text says why."""


class Traced(NamedTuple):
    """A module as a graph, and the same in torch's core operations: to come to those takes longer than to trace."""

    program: ExportedProgram
    core: ExportedProgram


def traced(module: nn.Module, inputs: list[torch.Tensor], what: str) -> Traced:
    """
    Overview:
        ``module(*inputs)`` as a graph in which the length of the first axis is free. ExportError where there is none.
    Arguments:
        - what (:obj:`str`): what is traced, for the error
    """
    rows = {0: torch.export.Dim('batch', min=1)}
    try:
        with _quiet(), torch.no_grad():
            program = torch.export.export(module, tuple(inputs), dynamic_shapes=((rows,) * len(inputs),), strict=False)
    except Exception as e:  # whatever the module's own code raises on symbolic numbers
        text = next(filter(None, (line.strip() for line in str(e).splitlines())), '')
        raise ExportError(f'{what} cannot be exported: {type(e).__name__}: {text:.300}') from e
    for node in program.graph.nodes:
        node.meta.pop('stack_trace', None)  # has paths of this machine
    with _quiet():
        core = program.run_decompositions()  # layers that draw where they are trained are without it here
    if any(torch.Tag.nondeterministic_seeded in getattr(node.target, 'tags', ()) for node in core.graph.nodes):
        raise ExportError(f'{what} cannot be exported: it draws random numbers where it should only act')
    return Traced(program, core)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's words about its own parts; those for its developers, where logs are read, cost it a minute."""
    logs = [logging.getLogger(name) for name in ('torch', 'torch.onnx', 'torch.__trace')]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        nowhere = io.StringIO()  # graphs are printed where something fails
        with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            warnings.simplefilter('ignore')
            yield
    finally:
        for log, level in zip(logs, before):
            log.setLevel(level)


def onnx_file(traced: Traced, about: dict[str, Any]) -> bytes:
    """As ONNX, with what it is as metadata ``nervex``."""
    names = {kind: [part['name'] for part in about[kind]] for kind in ('inputs', 'outputs')}
    with _quiet():
        made = torch.onnx.export(
            traced.program, (), dynamo=True, input_names=names['inputs'], output_names=names['outputs'], verbose=False
        )
    assert made is not None
    made.model.metadata_props['nervex'] = json.dumps(about)
    for node in made.model.graph:
        node.metadata_props.clear()
    return made.model_proto.SerializeToString()


def pt2_file(traced: Traced, about: dict[str, Any]) -> bytes:
    """As ``torch.export.save`` writes it, with what it is as the extra file ``nervex``."""
    file = io.BytesIO()
    with _quiet():
        torch.export.save(traced.program, file, extra_files={'nervex': json.dumps(about)})
    return file.getvalue()


def npz_file(traced: Traced, about: dict[str, Any]) -> bytes:
    """As ``nervex.runtime`` reads it: ``about.json``, ``program.json``, and an array for each weight."""
    steps, arrays = numpy_program(traced)
    file = io.BytesIO()
    with zipfile.ZipFile(file, 'w') as archive:
        for name, content in (('about', about), ('program', steps)):
            archive.writestr(zipfile.ZipInfo(f'{name}.json'), json.dumps(content))
        for k, array in enumerate(arrays):
            with archive.open(zipfile.ZipInfo(f'{k}.npy'), 'w') as part:
                np.lib.format.write_array(part, array, allow_pickle=False)
    return file.getvalue()


FORMATS: dict[str, Callable[[Traced, dict[str, Any]], bytes]] = {
    '.onnx': onnx_file,
    '.pt2': pt2_file,
    '.npz': npz_file,
}


# ---- the program for NumPy
def numpy_program(traced: Traced) -> tuple[dict[str, Any], list[np.ndarray]]:
    """
    Overview:
        The graph in torch's core operations as ``nervex.runtime.compiled`` takes it, and its arrays. What depends on no
        input is worked out here.
    """
    core = traced.core
    graph = core.graph
    for node in reversed(graph.nodes):
        if '_assert' in str(node.target) or (not node.users and node.op == 'call_function'):
            graph.erase_node(node)
    fixed, inputs, left = _fixed_part(core)
    arrays: dict[Node, int] = {}
    steps: dict[Node, int] = {}

    def encoded(item: Any) -> Any:
        if isinstance(item, Node):
            if item in fixed:
                return {'array': arrays.setdefault(item, len(arrays))} if _is_tensor(fixed[item]) else fixed[item]
            return {'input': inputs[item]} if item in inputs else {'step': steps[item]}
        if isinstance(item, (list, tuple)):
            return [encoded(part) for part in item]
        return item

    lines = []
    for node in left:
        name, arguments = _call(node)
        if name not in OPERATIONS:
            raise ExportError(f"nervex.runtime knows no operation '{name}', so there is no .npz of it; .onnx has all")
        if name == 'convolution' and arguments[6]:
            raise ExportError('nervex.runtime knows no transposed convolution, so there is no .npz of it; .onnx has it')
        given = [encoded(part) for part in arguments]
        for k in _other_kinds(node, arguments) if name in _MIXING else ():
            lines.append(['_to_copy', [given[k], str(node.meta['val'].dtype).removeprefix('torch.')]])
            given[k] = {'step': len(lines) - 1}
        lines.append([name, given])
        steps[node] = len(lines) - 1
    (out,) = (node for node in graph.nodes if node.op == 'output')
    outputs = encoded(out.args[0])
    before = {'input': 0, 'array': len(inputs), 'step': len(inputs) + len(arrays)}

    def placed(item: Any) -> Any:
        if isinstance(item, dict):
            ((kind, k),) = item.items()
            return {'value': before[kind] + k}
        return [placed(part) for part in item] if isinstance(item, list) else item

    made = {'inputs': len(inputs), 'arrays': len(arrays), 'steps': placed(lines), 'outputs': placed(outputs)}
    return made, [np.ascontiguousarray(fixed[node].detach().numpy()) for node in arrays]


def _other_kinds(node: Node, arguments: list[Any]) -> list[int]:
    """Which operands are of another kind of numbers than the result; a condition may be."""
    kinds = {k: part.meta['val'].dtype for k, part in enumerate(arguments) if isinstance(part, Node)}
    return [k for k, kind in kinds.items() if kind not in (node.meta['val'].dtype, torch.bool)]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _fixed_part(core: ExportedProgram) -> tuple[dict[Node, Any], dict[Node, int], list[Node]]:
    """The nodes whose value is known, with it; the inputs, numbered; and the nodes that are left to be run."""
    weights = {**core.constants, **core.state_dict}
    inputs: dict[Node, int] = {}
    fixed: dict[Node, Any] = {}
    left = []
    given = {spec.arg.name: spec.target for spec in core.graph_signature.input_specs}
    for node in core.graph.nodes:
        if node.op == 'placeholder' and given[node.name] is not None:
            fixed[node] = weights[given[node.name]]
        elif node.op == 'placeholder':
            inputs[node] = len(inputs)
        elif node.op == 'call_function' and all(source in fixed for source in node.all_input_nodes):
            known = torch.fx.node.map_arg((node.args, dict(node.kwargs)), fixed.__getitem__)
            fixed[node] = node.target(*known[0], **known[1])
        elif node.op == 'call_function':
            left.append(node)
    return fixed, inputs, left


def _call(node: Node) -> tuple[str, list[Any]]:
    """The name of an operation, and its arguments in order."""
    if isinstance(node.target, torch._ops.OpOverload):
        name = node.target._schema.name.partition('::')[2]
    else:
        name = getattr(node.target, '__name__', str(node.target))
        name = f'python.{name}' if getattr(operator, name, None) is node.target else name
    return name, in_order(node.target, node.args, node.kwargs)
