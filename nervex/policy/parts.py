"""What a policy is made of by default: optimizer, armors, adder, the schedule of epsilon; and the settings of these."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from easydict import EasyDict

from nervex.armor import Armor
from nervex.graph.acting import ACTING_GRAPH_AFTER
from nervex.graph.acting import BACKENDS as ACTING_BACKENDS
from nervex.graph.matmul import CHOICES as MATMULS
from nervex.graph.update import BACKENDS
from nervex.policy.base_policy import Policy
from nervex.rl_utils import Adder, epsilon_greedy
from nervex.torch_utils import Adam, RMSprop
from nervex.torch_utils.flat import FlatParameters
from nervex.utils.declare import one_of, setting, settings

EPSILON = settings(
    type=setting('exp', "'exp' | 'linear'", 'form of the decay'),
    start=setting(0.95, 'number in [0, 1]', 'share of random actions at the start'),
    end=setting(0.1, 'number in [0, 1]', 'and at the end'),
    decay=setting(10000, 'number >= 1', 'steps of the decay'),
)


class PolicyParts(Policy):
    """
    Overview:
        Builds what ``CommonPolicy`` runs on, by its settings. A subclass names its samplers, the parts that checkpoints
        carry and the columns of its samples that have a time axis.
    """

    config = settings(
        learn=dict(
            train_step=1,
            batch_size=setting(64, 'int >= 1', 'rows of one update'),
            learning_rate=1e-3,
            learning_rate_schedule=setting(
                'constant', "'constant' | 'linear' | 'cosine'", 'of all step sizes, over the whole run'
            ),
            learning_rate_end=setting(
                0.0, 'number in [0, 1]', 'what part of them the schedule leaves at the end of the run'
            ),
            weight_decay=0.0,
            optimizer=setting('adam', "'adam' | 'adamw' | 'rmsprop'", 'adamw: decay shrinks the weights instead'),
            optimizer_eps=setting(None, 'number > 0 | None', 'what the optimizer adds to its denominator; None: 1e-8'),
            optimizer_beta=setting(None, 'number in [0, 1) | None', "the past's share in adam's mean; None: 0.9"),
            grad_clip_norm=setting(None, 'number > 0 | None', 'largest norm of the gradient; None: not clipped'),
            init_data_count=0,
            ignore_done=setting(False, 'bool', 'treat every end as if the episode went on'),
            graph=setting('auto', one_of('auto', *BACKENDS), "the update as a recorded graph; auto: 'ts', later on"),
            matmul=setting('auto', one_of(*MATMULS), 'what multiplies float32 matrices; auto: by layer sizes and CPU'),
            algo={},
        ),
        collect=dict(
            traj_len=None,
            graph=setting('auto', one_of('auto', *ACTING_BACKENDS), "acting from a recording; auto: 'numpy', later on"),
            unroll_len=1,
            algo={},
        ),
        command=dict(eps=setting(check=EPSILON, meaning='exploration by random actions, where a policy has it')),
    )

    #: plugins that turn the model's output into actions, while collecting and in evaluations
    _collects_by = 'multinomial_sample'
    _evaluates_by = 'argmax_sample'
    #: columns of a batch that have a time axis, where samples are sequences
    _time_columns: tuple[str, ...] = ()
    #: whether the model has a recurrent state, to be kept for each env and stored with the steps
    _remembers = False

    _optimizer: Any
    _full_rates: list[tuple[Any, float]] = []  # optimizers, with their step sizes by the settings
    _eps: float
    _learn_setting_set: set[str]

    @classmethod
    def check_config(cls, cfg: EasyDict) -> list[tuple[str, str]]:
        """Settings of this policy that do not go together: pairs (path, what is wrong)."""
        problems = super().check_config(cfg)
        eps = cfg.command.eps if 'eps' in cfg.command else None
        if isinstance(eps, dict) and eps['start'] < eps['end']:
            text = f'got {eps["start"]}, must be at least policy.command.eps.end = {eps["end"]}: exploration decays'
            problems.append(('command.eps.start', text))
        if cfg.learn.optimizer == 'rmsprop' and cfg.learn.optimizer_beta is not None:
            text = f'got {cfg.learn.optimizer_beta}, but rmsprop keeps no mean of gradients; take adam, or leave it out'
            problems.append(('learn.optimizer_beta', text))
        return problems

    def _init_learn(self) -> None:
        """The model in an armor, with a target network if the settings have one, and one optimizer."""
        self._armor = self._learning_armor()
        self._optimizer = self._new_optimizer(self._model)

    def _learning_armor(self, *parts: str) -> Armor:
        """
        Overview:
            An armor over the model in training mode. ``target_update_freq`` in ``learn.algo`` makes a target network
            that is copied every so many updates, ``target_theta`` one that follows by this share in every update.
        Arguments:
            - parts (:obj:`str`): names of the model's parts that have an optimizer each; none: one for the whole model
        """
        armor, algo = Armor(self._model), self._cfg.learn.algo
        if 'target_update_freq' in algo:
            armor.add_model('target', update_type='assign', update_kwargs={'freq': algo.target_update_freq})
        elif 'target_theta' in algo and algo.target_theta is not None:
            armor.add_model('target', update_type='momentum', update_kwargs={'theta': algo.target_theta})
        armor.mode(train=True)
        if hasattr(armor, 'target_model'):
            armor.target_mode(train=True)
            for part in [getattr(armor.target_model, name) for name in parts] or [armor.target_model]:
                FlatParameters(part)
        return armor

    def _new_optimizer(self, module: torch.nn.Module, learning_rate: float | None = None) -> Any:
        """The optimizer over a module's parameters, made flat (once, for several), by the settings of ``learn``."""
        learn = self._cfg.learn
        kwargs: dict[str, Any] = {}
        if learn.grad_clip_norm is not None:
            kwargs.update(grad_clip_type='clip_norm', clip_value=learn.grad_clip_norm)
        if learn.optimizer_eps is not None:
            kwargs['eps'] = learn.optimizer_eps
        if learn.optimizer_beta is not None:
            kwargs['betas'] = (learn.optimizer_beta, 0.999)
        if learn.optimizer == 'adamw':
            kwargs['optim_type'] = 'adamw'
        flat = FlatParameters.of(module) or FlatParameters(module)
        rate = learn.learning_rate if learning_rate is None else learning_rate
        make = RMSprop if learn.optimizer == 'rmsprop' else Adam
        return self._scheduled(make(flat, lr=rate, weight_decay=learn.weight_decay, **kwargs))

    def _scheduled(self, optimizer: Any) -> Any:
        """The optimizer, whose step size will follow ``learn.learning_rate_schedule``."""
        self._full_rates = [*self._full_rates, (optimizer, optimizer.param_groups[0]['lr'])]
        self._learn_setting_set.add('lr_part')
        return optimizer

    @property
    def _lr_part(self) -> float:
        """What part of the step sizes the optimizers take."""
        optimizer, rate = self._full_rates[0]
        return optimizer.param_groups[0]['lr'] / rate

    @_lr_part.setter
    def _lr_part(self, part: float) -> None:
        for optimizer, rate in self._full_rates:
            for group in optimizer.param_groups:
                group['lr'] = rate * part

    def _init_collect(self) -> None:
        if 'eps' in self._cfg.command:
            self._collect_setting_set = {'eps'}
        envs = self._cfg.collect.env_num if self._remembers else 0
        self._collect_armor = self._acting_armor(self._collects_by, envs, save_states=True)

    def _init_eval(self) -> None:
        self._eval_armor = self._acting_armor(self._evaluates_by, self._cfg.eval.env_num if self._remembers else 0)

    def _acting_armor(self, sampler: str, envs: int = 0, save_states: bool = False, **kwargs: Any) -> Armor:
        """
        Overview:
            An armor for acting: the model without gradients, from a recording where that was chosen, and a sampler. It
            takes and gives arrays, or tensors.
        Arguments:
            - sampler (:obj:`str`): name of a plugin; '' leaves the output as it is
            - envs (:obj:`int`), save_states (:obj:`bool`): how many recurrent states are kept, and whether the output
              tells them; a model with a state is not recorded
            - kwargs: settings of the sampler
        """
        armor = self._recorded_armor(self._model, 'off' if self._remembers else None)
        if self._remembers:
            armor.add_plugin('main', 'hidden_state', state_num=envs, save_prev_state=save_states)
        if sampler:
            armor.add_plugin('main', sampler, **kwargs)
        return armor

    def _recorded_armor(self, model: torch.nn.Module, graph: str | None = None) -> Armor:
        """A model that acts without gradients, from a recording as ``collect.graph`` says, or ``graph``."""
        armor, graph = Armor(model), graph or self._cfg.collect.graph
        backend, after = ('numpy', ACTING_GRAPH_AFTER) if graph == 'auto' else (graph, 0)
        armor.add_plugin('main', 'graph', backend=backend, after=after)
        return armor

    def _reset_collect(self, data_id: list[int] | None = None) -> None:
        if hasattr(self, '_collect_armor'):
            self._collect_armor.reset(data_id=data_id)

    def _reset_eval(self, data_id: list[int] | None = None) -> None:
        if hasattr(self, '_eval_armor'):
            self._eval_armor.reset(data_id=data_id)

    @cached_property
    def _adder(self) -> Adder:
        return Adder(self._use_cuda, self._cfg.collect.unroll_len)

    def _init_command(self) -> None:
        """The schedule of epsilon, where ``command.eps`` is set: over updates, or what ``command.eps_by`` says."""
        command = self._cfg.command
        if 'eps' in command:
            eps = command.eps
            self._epsilon_greedy = epsilon_greedy(eps.start, eps.end, eps.decay, eps.type)
            self._eps_by = command.eps_by if 'eps_by' in command else 'learner_step'

    def run_state_dict(self) -> dict[str, Any]:
        """The state of the ``resume_parts``, and of the updates made so far by the name of their loss."""
        updates = {name: update.state_dict() for name, update in self.__dict__.get('_updates', {}).items()}
        return {**super().run_state_dict(), 'updates': updates}

    def load_run_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``run_state_dict`` gave; an update takes its part when it is first made."""
        super().load_run_state_dict(state)
        self._update_states = state['updates']
