"""A trained policy as one file that acts: ONNX, torch.export, or a program that needs NumPy alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from nervex.armor.plugin import IArmorStatelessPlugin
from nervex.config import compile_config
from nervex.envs.spaces import MASK, sizes_of, space_kind, to_gymnasium
from nervex.graph.exported import FORMATS, ExportError, traced
from nervex.policy.action_space import joined
from nervex.policy.batched import is_batched, name_of
from nervex.run.acting import Acting, arrays_in
from nervex.run.folder import names_in
from nervex.runtime import ENDINGS, FORMAT, load
from nervex.torch_utils.crossing import to_arrays
from nervex.torch_utils.network.rnn import RNN
from nervex.utils import tree
from nervex.utils.file_helper import atomic_write
from nervex.utils.import_helper import require
from nervex.version import __VERSION__
from nervex.worker.actor.rows import ObsBlock

_ROWS = 3  # of the example that is traced and compared; any other number does as well


def export_policy(config: Mapping, checkpoint: str, path: str, seed: int = 0) -> dict[str, Any]:
    """
    Overview:
        Write what the evaluator of a run does into a file, whole or not at all: from observations as the env gives
        them to actions as the env takes them, for any number of rows. It is loaded and compared before.
    Arguments:
        - config (:obj:`Mapping`): of the run
        - path (:obj:`str`): ends in .onnx, .pt2 or .npz; a file that is there is replaced
    Returns:
        - about (:obj:`dict`): what the file says of itself
    """
    ending = os.path.splitext(path)[1]
    if ending not in ENDINGS:
        raise ExportError(f'{path}: got the ending {ending!r}, must be one of {", ".join(ENDINGS)}')
    for package in ('onnx', 'onnxscript', 'onnxruntime') if ending == '.onnx' else ():
        require(package, 'nervex[export]', 'export to ONNX')
    cfg = compile_config(config, needs_env=True)
    cfg.policy.use_cuda = False
    if 'graph' in cfg.policy.collect:
        cfg.policy.collect.graph = 'off'
    acting = Acting(cfg, checkpoint, seed)
    acting.policy.eval_mode.get_attribute('model').eval()
    rows = list(_example(acting.space, seed))
    whole = rows if isinstance(rows[0], (dict, tuple)) else np.stack(rows)
    expected = None if acting.policy.exported_as else acting(whole)
    part = ActingPart(acting, rows)
    inputs = part.inputs(rows)
    with torch.no_grad():
        outputs = part(*inputs)
    about = _about(cfg, acting, part, inputs, outputs)
    made = FORMATS[ending](traced(part, inputs, f'policy {about["policy"]}'), about)
    _check(made, ending, rows, whole, expected if expected is not None else outputs[0].numpy())
    with atomic_write(path) as file:
        file.write(made)
    return about


def _about(cfg: Any, acting: Acting, part: ActingPart, inputs: list[torch.Tensor], outputs: tuple) -> dict[str, Any]:
    env, policy = names_in(cfg)
    action, _ = acting.codecs
    return {
        'format': FORMAT,
        'policy': policy,
        'env': env,
        'acts': acting.policy.exported_as or 'as in evaluations',
        'inputs': [_described(*pair) for pair in zip(part.input_names, inputs)],
        'outputs': [_described(*pair) for pair in zip(('action', 'next_state'), outputs)],
        'tuple': action is not None and action.kind == 'Tuple',
        'observation_space': str(acting.space),
        'action_space': str(to_gymnasium(acting.info.act_space) if action is None else action.space),
        'versions': {'nervex': __VERSION__, 'torch': torch.__version__},
    }


def _described(name: str, example: torch.Tensor) -> dict[str, Any]:
    """One input or output; the axis of rows, which stands in front, is left out."""
    return {'name': name, 'shape': list(example.shape[1:]), 'dtype': str(example.dtype).removeprefix('torch.')}


def _check(made: bytes, ending: str, rows: list[Any], whole: Any, expected: Any) -> None:
    """ExportError where the file does not act as the policy: rows together, and one."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f'policy{ending}')
        with open(path, 'wb') as file:
            file.write(made)
        policy = load(path)
        whole = tree.stack(whole) if isinstance(whole, list) else whole
        for found, wanted in ((policy.act(whole)[0], expected), (policy.act(rows[0])[0], expected[0])):
            if not np.allclose(found, wanted, rtol=1e-4, atol=1e-5):
                raise ExportError(f'what was traced acts differently: {found} instead of {wanted}; {policy.about}')


# ---- observations
def _array(space: Any, value: Any) -> np.ndarray:
    """An array of observations, of the dtype that the file takes."""
    single = space_kind(space) == 'MultiBinary' or space.dtype == np.float64
    return np.asarray(value, np.float32 if single else space.dtype)


def _example(space: Any, seed: int) -> Iterator[Any]:
    """A few observations; flags are 0 or 1."""
    space.seed(seed)
    for _ in range(_ROWS):
        obs = space.sample()
        if isinstance(obs, dict) and MASK in obs and isinstance(obs[MASK], np.ndarray):
            obs[MASK] = np.round(obs[MASK])
        yield obs


# ---- what is traced
class _Outside(IArmorStatelessPlugin):
    """Hands recurrent states in and out, in the place of the plugin that keeps them."""

    before: Any = None
    after: Any = None

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def outside_forward(data: Any, *args: Any, data_id: Any = None, **kwargs: Any) -> Any:
            output = dict(forward({**data, 'prev_state': self.before}, *args, **kwargs))
            self.after = output.pop('next_state')
            return output

        return outside_forward


class ActingPart(nn.Module):
    """
    Overview:
        What an evaluator does between the observations of envs and their actions, as one function of tensors:
        observations are encoded and scaled, the eval mode acts, actions take the form of the env.
    Shapes:
        - inputs: each array of observations :math:`(B, *)`; of a recurrent policy also its state :math:`(B, *)`
        - outputs: action :math:`(B, *)`; and the next state
    """

    def __init__(self, acting: Acting, rows: list[Any]) -> None:
        super().__init__()
        self._mode, self._space = acting.policy.eval_mode, acting.space
        self._action, self._obs = acting.codecs
        for hook in (self._mode.data_preprocess, self._mode.data_postprocess):
            if not is_batched(hook):
                raise ExportError(f'{name_of(hook)} takes rows, which no graph does; mark it @batched (nervex.policy)')
        self.model = self._mode.get_attribute('model')
        self._memory, self._state_shape = self._outside_memory()
        names = [name for name, *_ in arrays_in(acting.space, rows[0])]
        self.input_names = names if self._memory is None else [*names, 'state']
        block = to_arrays(self._flat(self._encoded(acting.space, iter(self.inputs(rows)))))
        self._scales = [] if acting.scaling is None else acting.scaling.scales(block)
        self._clip = None if acting.scaling is None else acting.scaling.clip

    def _outside_memory(self) -> tuple[Any, tuple[int, ...]]:
        """The plugin that hands states in and out, and the shape of those of one row; None: there is no memory."""
        ask = self._mode.get_attribute
        if not ask('remembers'):
            return None, ()
        armor, shape = ask('eval_armor'), ask('state_shape')
        if shape is None:
            nets = [net for net in self.model.modules() if isinstance(net, RNN)]
            if len(nets) != 1:
                name = type(self.model).__name__
                raise ExportError(f'{name} remembers by other means than one nervex.torch_utils.network.rnn.RNN')
            shape = (nets[0].block_dim,)
        armor.remove_plugin('main', armor.memory)
        armor.add_plugin('main', _Outside)
        return armor.plugin('_Outside'), tuple(shape)

    def inputs(self, rows: list[Any]) -> list[torch.Tensor]:
        """The inputs for these observations, of which each begins an episode."""
        columns = zip(*([_array(part, x) for _, part, x in arrays_in(self._space, row)] for row in rows))
        given = [torch.from_numpy(np.stack(column)) for column in columns]
        return given if self._memory is None else [*given, torch.zeros(len(rows), *self._state_shape)]

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The outputs that the class describes."""
        given = iter(inputs)
        obs = self._scaled(self._flat(self._encoded(self._space, given)))
        if self._memory is not None:
            self._memory.before = next(given)
        data_id, data = self._mode.data_preprocess(ObsBlock(np.empty(0, int), obs))
        output = self._mode.data_postprocess(data_id, self._mode.get_attribute('forward_exported')(data))
        action = self._decoded(joined(output['action']))
        return (action,) if self._memory is None else (action, self._memory.after)

    def _encoded(self, space: Any, given: Iterator[torch.Tensor]) -> Any:
        """As ``ObsCodec`` does."""
        kind = space_kind(space)
        if kind in ('Dict', 'Tuple'):
            parts = space.spaces.items() if kind == 'Dict' else enumerate(space.spaces)
            return {str(key): self._encoded(part, given) for key, part in parts if space_kind(part) != 'Text'}
        x = next(given)
        if self._obs is None or (kind == 'Box' and space.shape) or kind == 'MultiBinary':
            return x
        if kind == 'Box':
            return x.unsqueeze(-1)
        sizes, start = sizes_of(space) or ((), np.zeros(0))
        if not self._obs.one_hot:
            return x - torch.from_numpy(start.reshape(space.shape))
        columns = x.reshape(-1, len(sizes)).unbind(1)
        shown = [column.unsqueeze(1) == torch.arange(n) + int(low) for column, n, low in zip(columns, sizes, start)]
        return torch.cat(shown, 1).float()

    def _flat(self, obs: Any) -> Any:
        if self._obs is None or not self._obs.flatten:
            return obs
        if isinstance(obs, dict) and MASK in obs:
            rest = {key: part for key, part in obs.items() if key != MASK}
            return {'observation': _one_row(rest), MASK: obs[MASK]}
        return _one_row(obs)

    def _scaled(self, obs: Any) -> Any:
        """As the Normalizer does."""
        limit = self._clip
        if limit is None:
            return obs
        scales = iter(self._scales)

        def scaled(x: torch.Tensor) -> torch.Tensor:
            if (scale := next(scales)) is None:
                return x
            mean, deviation = (torch.as_tensor(part) for part in scale)
            return ((x - mean) / deviation).clamp(-limit, limit).float()

        return tree.map(scaled, obs)

    def _decoded(self, action: torch.Tensor) -> torch.Tensor:
        """As ``ActionCodec`` does."""
        codec = self._action
        if codec is None:
            return action
        kind, shape = (
            (np.int64, (len(codec.nvec),)) if codec.kind == 'Tuple' else (codec.space.dtype, codec.space.shape)
        )
        dtype = torch.from_numpy(np.empty(0, kind)).dtype
        if codec.kind != 'Box':
            shifted = action + torch.as_tensor(codec.start) if np.any(codec.start) else action
            return shifted.reshape(-1, *shape).to(dtype)
        action = action.to(dtype).reshape(-1, *shape)
        if codec.scale is not None:
            low, half = (torch.from_numpy(part) for part in codec.scale)
            action = (low + half * (action.clamp(-1.0, 1.0) + 1.0)).to(dtype)
        return action


def _one_row(obs: Any) -> torch.Tensor:
    """All numbers of an observation, side by side."""
    return torch.cat([x.unsqueeze(-1).flatten(1).float() for x in tree.leaves(obs)], 1)
