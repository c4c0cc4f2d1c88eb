"""``Policy``: the frame of one algorithm - a model and up to four modes."""

from __future__ import annotations

import functools
import logging
from collections import deque
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import torch
from easydict import EasyDict

from nervex.policy.modes import FIELDS, HasModes
from nervex.policy.suits import misfits, policy_config
from nervex.utils import POLICY_REGISTRY, ConfigError, unknown_name
from nervex.utils.declare import setting, settings
from nervex.utils.import_helper import import_modules
from nervex.utils.part_state import named, put_back, state_of, undeclared_parts

logger = logging.getLogger(__name__)


class Policy(HasModes):
    """
    Overview:
        A model and the modes ``learn``, ``collect``, ``eval`` and ``command``. A subclass writes the hooks named
        ``_init_<mode>``, ``_forward_<mode>``, ...; workers hold ``policy.learn_mode`` and its siblings.
    Arguments:
        - cfg (:obj:`dict`): the policy section of a config; what it leaves out comes from the ``config`` of the class
        - model (:obj:`torch.nn.Module | type | None`): an instance, a class that is built from ``cfg.model``, or None
          for the policy's default model
        - enable_field (:obj:`Iterable[str] | None`): which modes to initialise; None means all four
    """

    #: A setting without a default exists where a subclass gives it one: ``config = dict(learn=dict(batch_size=64))``.
    config = settings(
        policy_type=setting(None, 'str | class | None', 'registered name; None when the class itself was passed'),
        import_names=setting(None, 'str | list of str | None', 'modules to import first, so that they can register'),
        on_policy=setting(False, 'bool', 'learn only from what was collected since the last round of updates'),
        use_cuda=setting(False, 'bool', 'run on the GPU'),
        use_distributed=setting(False, 'bool', 'average gradients over the processes of torch.distributed'),
        torch_threads=setting(
            None, 'int in [1, 1024] | None', 'of the CPU; None: 1 unless a layer is 256 wide or wider'
        ),
        use_priority=setting(False, 'bool', 'prioritized replay: weights from the buffer, priorities back to it'),
        model=setting({}, 'dict', "arguments of the model's constructor, and its model_type: nervex -q model"),
        learn=dict(
            train_step=setting(check='int >= 1', meaning='updates per round of collecting'),
            epochs=setting(check='int >= 1 | None', meaning='passes over what was collected; None: train_step updates'),
            batch_size=setting(check='int >= 1 | dict of int >= 1', meaning='rows of one update; by buffer name'),
            init_data_count=setting(check='int >= 0', meaning='rows in the buffer before the first update'),
            learning_rate=setting(check='number > 0', meaning='step size of the optimizer'),
            weight_decay=setting(check='number >= 0', meaning='L2 penalty'),
            algo=dict(
                discount_factor=setting(
                    check='number in [-1, 1]', meaning='gamma; negative where one policy plays both sides in turn'
                ),
                nstep=setting(check='int in [1, 10000]', meaning='rewards summed before the target network takes over'),
                gae_lambda=setting(check='number in [0, 1]', meaning='lambda of the advantages'),
                target_update_freq=setting(check='int >= 1', meaning='updates between two copies into the target'),
                target_theta=setting(check='number in (0, 1]', meaning='share of the networks in their targets'),
            ),
        ),
        collect=dict(
            traj_len=setting(
                check='int >= 1 | inf | None',
                meaning="steps of one env in a sample window; 'inf': whole episodes",
            ),
            unroll_len=setting(check='int >= 1', meaning='steps of one training sample; above 1 for recurrent models'),
            env_num=setting(check='int >= 1', meaning='envs that collect', same_as='env.actor_env_num'),
            algo=dict(
                discount_factor=setting(check='number in [-1, 1]', same_as='policy.learn.algo.discount_factor'),
                nstep=setting(check='int in [1, 10000]', same_as='policy.learn.algo.nstep'),
            ),
        ),
        eval=dict(env_num=setting(check='int >= 1', meaning='envs that evaluate', same_as='env.evaluator_env_num')),
        command={},
    )

    #: kinds of actions that the policy gives, of 'discrete', 'multi_discrete' and 'continuous'; None: any
    action_kinds: tuple[str, ...] | None = None
    #: smallest and largest number of the continuous actions that it gives; None: not known
    action_range: tuple[float, float] | None = None
    #: whether it keeps to an ``action_mask`` among the observations
    takes_action_mask: bool = True
    #: why it should not learn from what it collects itself; None: it may
    no_own_data: str | None = None
    #: why n-step rewards, or priorities, make no sense here; None: they do
    no_nstep: str | None = None
    no_priority: str | None = None
    #: how an exported file acts ('acts by ...'), where that is not what the evaluator does; None: the same
    exported_as: str | None = None
    #: names of attributes that an exact resume puts back beside what ``_state_dict_learn`` saves: parts with
    #: ``state_dict`` and ``load_state_dict`` (of an armor, its plugins), generators of torch or NumPy, plain numbers.
    #: A class names its own; those of its bases count too. What a mode has not made is left out.
    resume_parts: tuple[str, ...] = ('_armor', '_collect_armor', '_eval_armor', '_adder')
    #: the same for what checkpoints of the learn mode, and weights sent to actors, carry beside the model
    learn_parts: tuple[str, ...] = ('_optimizer', '_target_model')
    collect_parts: tuple[str, ...] = ()

    #: the registered name of the default model, for a subclass that does not write ``default_model``
    _default_model = ''
    #: which keys of ``_forward_learn``'s answer are logged
    _logs = 'cur_lr total_loss'
    _model: Any
    _armor: Any

    def __init__(
        self, cfg: dict, model: torch.nn.Module | type | None = None, enable_field: Iterable[str] | None = None
    ) -> None:
        self._cfg = EasyDict(policy_config(type(self), cfg, model))
        fields = tuple(FIELDS if enable_field is None else enable_field)
        for field in fields:
            if field not in FIELDS:
                raise ValueError(unknown_name('policy mode', field, FIELDS))
        self._enable_field = fields
        self._use_cuda = bool(self._cfg.use_cuda) and torch.cuda.is_available()
        if self._cfg.use_cuda and not self._use_cuda:
            _say_no_gpu()
        self._use_distributed = bool(self._cfg.use_distributed) and torch.distributed.is_initialized()
        if self._cfg.use_distributed and not self._use_distributed:
            logger.warning('policy.use_distributed: this process is in no group of torch.distributed, it learns alone')
        self._rank = torch.distributed.get_rank() if self._use_distributed else 0
        self._device = (
            torch.device('cuda', self._rank % torch.cuda.device_count()) if self._use_cuda else torch.device('cpu')
        )
        for field in FIELDS:
            setattr(self, f'_{field}_setting_set', set())
        if {'learn', 'collect', 'eval'} & set(fields):
            self._model = self._build_model(model).to(self._device)
        for field in fields:
            getattr(self, f'_init_{field}')()

    def _build_model(self, model: torch.nn.Module | type | None) -> torch.nn.Module:
        if isinstance(model, torch.nn.Module):
            return model
        if model is not None and not isinstance(model, type):
            raise TypeError(f'model: got {type(model).__name__}, must be a torch.nn.Module, a class of one, or None')
        return self._create_model_from_cfg(self._cfg, model)

    # ---- what checkpoints and a resume put back ----
    def run_state_dict(self) -> dict[str, Any]:
        """The state of the ``resume_parts``, for an exact resume."""
        return {name: state_of(part) for name, part in named(self, 'resume_parts').items()}

    def load_run_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``run_state_dict`` gave; parts of modes that are not here are passed over."""
        for name in named(self, 'resume_parts'):
            if name in state:
                put_back(self, name, state[name])

    def check_resume(self) -> None:
        """What has a memory that no resume would put back is an error, before that makes a difference."""
        declared = [*named(self, 'resume_parts').values(), *self._learn_parts().values()]
        lost = list(undeclared_parts(self, declared))
        if lost:
            raise ConfigError(
                f'policy: {type(self).__name__}.{name} has a memory (a random generator, plugins) that --resume would '
                f'not put back; declare it in the class, resume_parts = ({name!r},): a generator, or an object with '
                'state_dict() and load_state_dict(state)'
                for name in lost
            )

    def __repr__(self) -> str:
        return f'{type(self).__name__}(modes={list(self._enable_field)}, device={self._device})'

    # ---- what a subclass may or must write ----
    @classmethod
    def check_config(cls, cfg: EasyDict) -> list[tuple[str, str]]:
        """Settings of this policy that do not go together: pairs (path in the policy's section, what is wrong)."""
        return misfits(cls, cfg)

    def default_model(self) -> tuple[str, list[str]]:
        """The registered name of the default model, and the modules to import for it."""
        if self._default_model:
            return self._default_model, ['nervex.model']
        raise NotImplementedError(
            f'{type(self).__name__} has no default model: write default_model() or '
            '_create_model_from_cfg(cfg, model_type), or pass a model'
        )

    def _create_model_from_cfg(self, cfg: EasyDict, model_type: type | None = None) -> torch.nn.Module:
        """Build the model from ``cfg.model``; ``model_type`` is the class that the caller passed, or None."""
        from nervex.model import create_model

        try:
            if model_type is not None:
                return create_model({**cfg.model, 'model_type': model_type})
            name, import_names = self.default_model()
            return create_model({'model_type': name, 'import_names': import_names, **cfg.model})
        except ValueError as error:  # what the check of its arguments could not see
            raise ConfigError([f'policy.model: {error}']) from error

    def _init_learn(self) -> None:
        raise NotImplementedError(f'{type(self).__name__}._init_learn')

    def _init_collect(self) -> None:
        raise NotImplementedError(f'{type(self).__name__}._init_collect')

    def _init_eval(self) -> None:
        raise NotImplementedError(f'{type(self).__name__}._init_eval')

    def _init_command(self) -> None:
        """Most policies give no commands."""

    def _data_preprocess_learn(self, data: Any) -> dict:
        raise NotImplementedError(f'{type(self).__name__}._data_preprocess_learn')

    def _forward_learn(self, data: dict) -> dict[str, Any]:
        raise NotImplementedError(f'{type(self).__name__}._forward_learn')

    def _reset_learn(self, data_id: list[int] | None = None) -> None:
        """Nothing to reset by default."""

    def _monitor_vars_learn(self) -> list[str]:
        return self._logs.split()

    def _data_preprocess_collect(self, data: Any) -> Any:
        raise NotImplementedError(f'{type(self).__name__}._data_preprocess_collect')

    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        raise NotImplementedError(f'{type(self).__name__}._forward_collect')

    def _data_postprocess_collect(self, data_id: list[int], output: dict) -> Any:
        raise NotImplementedError(f'{type(self).__name__}._data_postprocess_collect')

    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        raise NotImplementedError(f'{type(self).__name__}._process_transition')

    def _get_train_sample(self, traj_cache: deque) -> Any:
        raise NotImplementedError(f'{type(self).__name__}._get_train_sample')

    def _reset_collect(self, data_id: list[int] | None = None) -> None:
        """Nothing to reset by default."""

    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        raise NotImplementedError(f'{type(self).__name__}._forward_eval')

    def _reset_eval(self, data_id: list[int] | None = None) -> None:
        """Nothing to reset by default."""

    def _forward_exported(self, data: dict) -> dict:
        """What ``nervex export`` traces, for any number of rows; ``exported_as`` says if it is something else."""
        return self._forward_eval([], data)

    @cached_property
    def _target_model(self) -> torch.nn.Module:
        return self._armor.target_model

    def _learn_parts(self) -> dict[str, Any]:
        """What checkpoints of the learn mode carry beside the model, by name."""
        return {name.lstrip('_'): part for name, part in named(self, 'learn_parts').items()}

    @property
    def _param_groups(self) -> list[dict[str, Any]]:
        """Of all optimizers; loading a state replaces them."""
        return [group for part in self._learn_parts().values() for group in getattr(part, 'param_groups', ())]

    def _state_dict_learn(self) -> dict:
        return self._state_with('learn_parts')

    def _load_state_dict_learn(self, state_dict: dict) -> None:
        self._put_back_with('learn_parts', state_dict)

    def _state_dict_collect(self) -> dict:
        return self._state_with('collect_parts')

    def _load_state_dict_collect(self, state_dict: dict) -> None:
        self._put_back_with('collect_parts', state_dict)

    def _state_with(self, listing: str) -> dict[str, Any]:
        parts = {name.lstrip('_'): state_of(part) for name, part in named(self, listing).items()}
        return {'model': self._model.state_dict(), **parts}

    def _put_back_with(self, listing: str, state_dict: dict) -> None:
        self._model.load_state_dict(state_dict['model'])
        for name in named(self, listing):
            if name.lstrip('_') in state_dict:
                put_back(self, name, state_dict[name.lstrip('_')])

    def _state_dict_eval(self) -> dict:
        return {'model': self._model.state_dict()}

    def _load_state_dict_eval(self, state_dict: dict) -> None:
        from nervex.rl_utils.normalize import Normalizer  # no policy needs it before

        self._model.load_state_dict(state_dict['model'])
        self._obs_scaling = Normalizer.of_checkpoint(state_dict)


@functools.cache  # once
def _say_no_gpu() -> None:
    logger.warning('policy.use_cuda: torch %s finds no GPU here, so the policy runs on the CPU', torch.__version__)


def register_policy(name: str, cls: type[Policy]) -> None:
    """Register a policy class under a name that configs may use."""
    POLICY_REGISTRY.register(name, cls)


def create_policy(cfg: dict, **kwargs: Any) -> Policy:
    """
    Overview:
        Import ``cfg['import_names']``, then build the policy registered as ``cfg['policy_type']``.
    Arguments:
        - kwargs: what ``Policy`` takes beside cfg: ``model``, ``enable_field``
    """
    import_modules(cfg.get('import_names') or [])
    return POLICY_REGISTRY.get(cfg['policy_type'])(cfg, **kwargs)
