"""``CommonPolicy``: what most algorithms share, so that an algorithm's own file holds only the algorithm."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from easydict import EasyDict

from nervex.armor import Armor
from nervex.armor.sampling import Draws
from nervex.data import Batch, default_collate
from nervex.graph.acting import ACTING_GRAPH_AFTER
from nervex.graph.acting import BACKENDS as ACTING_BACKENDS
from nervex.graph.matmul import CHOICES as MATMULS
from nervex.graph.update import BACKENDS, LossFn, Update
from nervex.policy.action_space import model_input
from nervex.policy.base_policy import Policy
from nervex.policy.batched import batched
from nervex.policy.sequences import FirstStates, cut_sequences, pack_states, time_first
from nervex.policy.traj_block import batched_steps, repeats_of
from nervex.rl_utils import Adder, epsilon_greedy, flatten_time, v_nstep_td_data, v_nstep_td_error
from nervex.torch_utils import Adam, RMSprop
from nervex.torch_utils.crossing import as_float32, to_tensors
from nervex.torch_utils.flat import FlatParameters
from nervex.utils.declare import one_of, setting, settings

EPSILON = settings(
    type=setting(check="'exp' | 'linear'", meaning='form of the decay', needed=True),
    start=setting(check='number in [0, 1]', meaning='share of random actions at the start', needed=True),
    end=setting(check='number in [0, 1]', meaning='and at the end', needed=True),
    decay=setting(check='number >= 1', meaning='steps of the decay', needed=True),
)


class CommonPolicy(Policy):
    """
    Overview:
        What most algorithms share: a subclass writes its loss, and overrides what is special to it. By default a batch
        becomes tensors, ``_loss`` is minimised by one optimizer, a target network follows where ``learn.algo`` has
        ``target_update_freq`` or ``target_theta``, samplers turn the model's output into actions (with a schedule of
        epsilon where ``command.eps`` is set), and samples are steps with n-step rewards.
        All of it takes N rows at once; a subclass that overrides a hook without ``@batched`` gets rows for that hook.
    """

    config = settings(
        learn=dict(
            train_step=1,
            batch_size=setting(64, 'int >= 1', 'rows of one update'),
            learning_rate=1e-3,
            weight_decay=0.0,
            optimizer=setting('adam', "'adam' | 'adamw' | 'rmsprop'", 'adamw: decay shrinks the weights instead'),
            optimizer_eps=setting(None, 'number > 0 | None', 'what the optimizer adds to its denominator; None: 1e-8'),
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
    resume_parts = ('_the_adder',)

    #: plugins that turn the model's output into actions, while collecting and in evaluations
    _collects_by = 'multinomial_sample'
    _evaluates_by = 'argmax_sample'
    #: columns of a batch that have a time axis, where samples are sequences
    _time_columns: tuple[str, ...] = ()
    #: attributes that a resumed learner needs, beside the parts in ``_learn_parts``
    _learn_counts: tuple[str, ...] = ()

    _armor: Any
    _optimizer: Any
    _eps: float

    @classmethod
    def check_config(cls, cfg: EasyDict) -> list[tuple[str, str]]:
        """Settings of this policy that do not go together: pairs (path, what is wrong)."""
        problems = super().check_config(cfg)
        eps = cfg.command.eps if 'eps' in cfg.command else None
        if isinstance(eps, dict) and eps['start'] < eps['end']:
            text = f'got {eps["start"]}, must be at least policy.command.eps.end = {eps["end"]}: exploration decays'
            problems.append(('command.eps.start', text))
        return problems

    # ---- learn ----
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
        elif 'target_theta' in algo:
            armor.add_model('target', update_type='momentum', update_kwargs={'theta': algo.target_theta})
        armor.mode(train=True)
        if hasattr(armor, 'target_model'):
            armor.target_mode(train=True)
            for part in [getattr(armor.target_model, name) for name in parts] or [armor.target_model]:
                FlatParameters(part)
        return armor

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        """The loss of a batch, and what is logged of it; ``td_error``, one a row, becomes the priority."""
        raise NotImplementedError(f'{type(self).__name__}._loss(data) -> (loss, values to log)')

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        """One update along the gradient of ``_loss``, and of the target network."""
        loss, info = self._minimize(self._loss, data, self._optimizer)
        if self._has_target:
            self._armor.target_update(self._model)
        log = {'cur_lr': self._optimizer.param_groups[0]['lr'], 'total_loss': loss, **info}
        td_error = log.pop('td_error', None)
        return {**log, 'priority': td_error.abs()} if self._use_priority and td_error is not None else log

    @cached_property
    def _has_target(self) -> bool:
        return hasattr(self._armor, 'target_model')

    @cached_property
    def _gamma(self) -> float:
        return self._cfg.learn.algo.discount_factor

    @cached_property
    def _nstep(self) -> int:
        return self._cfg.learn.algo.nstep

    def _nstep_kwargs(self, data: dict[str, Any]) -> dict[str, Any]:
        """How many rewards a sample has, and the discount of what follows where it has fewer."""
        return {'nstep': self._nstep, 'value_gamma': data.get('value_gamma')}

    @staticmethod
    def _time_first(data: dict[str, Any]) -> torch.Tensor:
        """Rewards (B, nstep) or (B, ) -> (nstep, B)."""
        reward = data['reward']
        return reward.unsqueeze(0) if reward.dim() == 1 else reward.t()

    def _data_preprocess_learn(self, data: Batch | list[dict]) -> dict[str, Any]:
        """
        Overview:
            Rows -> tensors on the device. ``done`` becomes 1. where the episode truly ended and 0. where only the time
            ran out; ``IS`` is the buffer's importance weight (1 without priorities), ``weight`` the same with
            ``use_priority``, else None. Sequences get their time axis in front; ``prev_state`` becomes a list of
            states.
        """
        if isinstance(data, Batch):
            out = data.to_torch(self._device if self._use_cuda else None)
        else:
            out = to_tensors(default_collate(list(data)), self._device)
        done, truncated = out.get('done'), out.get('truncated')
        if self._cfg.learn.ignore_done:
            out['done'] = None
        elif done is not None:
            out['done'] = done.float() if truncated is None else (done > truncated).float()  # done and not truncated
        if (reward := out.get('reward')) is not None and reward.dim() == 2 and reward.shape[1] == 1:
            out['reward'] = reward.squeeze(1)  # rows carry rewards of shape (1, )
        out['weight'] = out.get('IS') if self._use_priority else None
        if 'IS' not in out:
            out['IS'] = self._no_weights(len(data))
        if self._time_columns:
            if 'reward' in out:
                out['reward'] = out['reward'].reshape(out['mask'].shape)  # of one step; or rows with rewards (1, )
            return time_first(out, self._time_columns)
        return out

    def _no_weights(self, rows: int) -> torch.Tensor:
        """Importance weights of rows that were all drawn alike."""
        ones = self.__dict__.get('_ones')
        if ones is None or len(ones) != rows:
            ones = self._ones = torch.ones(rows, device=self._device)
        return ones

    @property
    def _use_priority(self) -> bool:
        return self._cfg.use_priority

    def _state_dict_learn(self) -> dict:
        """Model, optimizer and target network, as far as the policy has them under the usual names."""
        state = {'model': self._model.state_dict()}
        for name, part in self._learn_parts().items():
            state[name] = part.state_dict()
        return {**state, **{name.lstrip('_'): getattr(self, name) for name in self._learn_counts}}

    def _load_state_dict_learn(self, state_dict: dict) -> None:
        self._model.load_state_dict(state_dict['model'])
        for name, part in self._learn_parts().items():
            if name in state_dict:
                part.load_state_dict(state_dict[name])
        for name in self._learn_counts:
            setattr(self, name, state_dict.get(name.lstrip('_'), getattr(self, name)))

    def _learn_parts(self) -> dict[str, Any]:
        """Everything beside the model that a resumed learner needs, by name; each has ``state_dict``."""
        parts = {}
        if hasattr(self, '_optimizer'):
            parts['optimizer'] = self._optimizer
        armor = getattr(self, '_armor', None)
        if armor is not None and hasattr(armor, 'target_model'):
            parts['target_model'] = armor.target_model
        return parts

    # ---- collect and eval ----
    @batched
    def _data_preprocess_collect(self, data: Any) -> tuple[list[int], dict]:
        """``{env_id: obs}``, or the actor's block of observations -> (env ids, the model's input)."""
        if isinstance(data, dict):
            ids = list(data)
            return ids, self._model_input(to_tensors(default_collate([data[i] for i in ids]), self._device))
        obs = data.obs
        if type(obs) is np.ndarray and obs.dtype != np.float64:  # most are: no further call
            return data.env_id, {'obs': obs}
        return data.env_id, self._model_input(as_float32(obs))

    def _model_input(self, obs: Any) -> dict[str, Any]:
        """``{'obs': batch}``; an ``action_mask`` among the observations goes beside the rest."""
        if not isinstance(obs, dict):
            return {'obs': obs}
        heads = self._cfg.model['action_dim'] if 'action_dim' in self._cfg.model else None
        return model_input(obs, heads if isinstance(heads, (list, tuple)) else None)

    @batched
    def _data_postprocess_collect(self, data_id: list[int], output: dict) -> dict:
        """The output as it is, in columns; a worker cuts it into rows where a hook wants rows."""
        return output

    @batched
    def _data_preprocess_eval(self, data: Any) -> tuple[list[int], dict]:
        return self._data_preprocess_collect(data)

    @batched
    def _data_postprocess_eval(self, data_id: list[int], output: dict) -> dict:
        return self._data_postprocess_collect(data_id, output)

    @cached_property
    def _first_states(self) -> FirstStates:
        return FirstStates(self._model)

    @property
    def _remembers(self) -> bool:
        """Whether the model has a recurrent state, to be kept for each env and stored with the steps."""
        return False

    def _acting_armor(self, sampler: str, envs: int = 0, save_states: bool = False, **kwargs: Any) -> Armor:
        """
        Overview:
            An armor for acting: the model without gradients, from a recording where that was chosen, and a sampler. It
            takes and gives arrays, or tensors.
        Arguments:
            - envs (:obj:`int`), save_states (:obj:`bool`): how many recurrent states are kept, and whether the output
              tells them; a model with a state is not recorded
            - kwargs: settings of the sampler
        """
        armor, graph = Armor(self._model), 'off' if self._remembers else self._cfg.collect.graph
        backend, after = ('numpy', ACTING_GRAPH_AFTER) if graph == 'auto' else (graph, 0)
        armor.add_plugin('main', 'graph', backend=backend, after=after)
        if self._remembers:
            armor.add_plugin('main', 'hidden_state', state_num=envs, save_prev_state=save_states)
        armor.add_plugin('main', sampler, **kwargs)
        return armor

    def _init_collect(self) -> None:
        if 'eps' in self._cfg.command:
            self._collect_setting_set = {'eps'}
        envs = self._cfg.collect.env_num if self._remembers else 0
        self._collect_armor = self._acting_armor(self._collects_by, envs, save_states=True)

    @batched
    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        if not self._remembers:
            return self._collect_armor.forward(data, **self._sampler_kwargs(data_id))
        output = self._collect_armor.forward(data, data_id=data_id, **self._sampler_kwargs(data_id))
        output['prev_state'] = self._first_states.fill(output['prev_state'], data)
        return output

    def _sampler_kwargs(self, data_id: list[int]) -> dict[str, Any]:
        """What the collecting sampler needs beside the model's output: epsilon, where there is one."""
        return {'eps': self._eps} if 'eps' in self._collect_setting_set else {}

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        transition = {
            'obs': obs,
            'next_obs': timestep.obs,
            'action': armor_output['action'],
            'reward': timestep.reward,
            'done': timestep.done,
        }
        if 'prev_state' in armor_output:
            transition['prev_state'] = pack_states(armor_output['prev_state'])
        return transition

    def _init_eval(self) -> None:
        self._eval_armor = self._acting_armor(self._evaluates_by, self._cfg.eval.env_num if self._remembers else 0)

    @batched
    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        return self._eval_armor.forward(data, data_id=data_id) if self._remembers else self._eval_armor.forward(data)

    def _reset_collect(self, data_id: list[int] | None = None) -> None:
        armor = getattr(self, '_collect_armor', None)
        if armor is not None:
            armor.reset(data_id=data_id)

    def _reset_eval(self, data_id: list[int] | None = None) -> None:
        armor = getattr(self, '_eval_armor', None)
        if armor is not None:
            armor.reset(data_id=data_id)

    # ---- command ----
    def _init_command(self) -> None:
        """The schedule of epsilon, where ``command.eps`` is set: over updates, or what ``command.eps_by`` says."""
        command = self._cfg.command
        if 'eps' in command:
            eps = command.eps
            self._epsilon_greedy = epsilon_greedy(eps.start, eps.end, eps.decay, eps.type)
            self._eps_by = command.eps_by if 'eps_by' in command else 'learner_step'

    def _get_setting_collect(self, command_info: dict) -> dict:
        return {'eps': self._epsilon_greedy(command_info[self._eps_by])} if 'eps' in self._cfg.command else {}

    # ---- samples ----
    def _get_traj_overlap(self) -> int:
        """Steps at a window's end that come again in the next one: n-step targets need the steps behind them."""
        return self._collect_algo('nstep', 1) - 1

    def _collect_algo(self, key: str, default: Any) -> Any:
        return self._cfg.collect.algo[key] if key in self._cfg.collect.algo else default

    @batched_steps
    def _get_train_sample(self, traj_cache: Batch) -> Batch:
        """A window of steps, time first -> training samples with n-step rewards."""
        samples, nstep = traj_cache, self._collect_algo('nstep', 1)
        if nstep > 1:
            overlap, gamma = repeats_of(traj_cache, self._get_traj_overlap()), self._gamma_for_nstep()
            samples = self._the_adder.get_nstep_return_data(traj_cache, nstep, gamma=gamma, overlap=overlap)
        return samples if traj_cache['done'].ndim == 1 else flatten_time(samples)

    def _sequences(self, traj: Batch, context: int = 0) -> Batch:
        """
        Overview:
            A window of steps, time first, -> sequences of ``unroll_len`` steps with a time axis inside the row, see
            ``cut_sequences``.
        Arguments:
            - context (:obj:`int`): earlier steps at the head of each sequence
        """
        return cut_sequences(traj, self._cfg.collect.unroll_len, context, repeats_of(traj, context))

    @property
    def _the_adder(self) -> Adder:
        if not hasattr(self, '_adder'):
            self._adder = Adder(self._use_cuda, self._cfg.collect.unroll_len)
        return self._adder

    def _gamma_for_nstep(self) -> float | None:
        learn = self._cfg.learn.algo
        return learn.discount_factor if 'discount_factor' in learn else None

    # ---- update ----
    def _new_optimizer(self, module: torch.nn.Module, learning_rate: float | None = None) -> Any:
        """The optimizer over a module's parameters, made flat (once, for several), by the settings of ``learn``."""
        learn = self._cfg.learn
        kwargs: dict[str, Any] = {}
        if learn.grad_clip_norm is not None:
            kwargs.update(grad_clip_type='clip_norm', clip_value=learn.grad_clip_norm)
        if learn.optimizer_eps is not None:
            kwargs['eps'] = learn.optimizer_eps
        if learn.optimizer == 'adamw':
            kwargs['optim_type'] = 'adamw'
        flat = FlatParameters.of(module) or FlatParameters(module)
        rate = learn.learning_rate if learning_rate is None else learning_rate
        make = RMSprop if learn.optimizer == 'rmsprop' else Adam
        return make(flat, lr=rate, weight_decay=learn.weight_decay, **kwargs)

    def _minimize(self, loss_fn: LossFn, data: dict, optimizer: Any) -> tuple[torch.Tensor, dict]:
        """
        Overview:
            One update of ``optimizer``'s parameters along the gradient of ``loss_fn(data) -> (loss, log values)``; the
            loss function is a method of the policy, and everything that changes enters it as a tensor in ``data``.
        """
        return self._update_of(loss_fn, optimizer)(data)

    def _update_of(self, loss_fn: LossFn, optimizer: Any) -> Update:
        updates = self.__dict__.setdefault('_updates', {})
        name = loss_fn.__name__
        if name not in updates:
            learn = self._cfg.learn
            updates[name] = Update(loss_fn, optimizer, learn.graph, self._model, self._use_distributed, learn.matmul)
            if name in self.__dict__.get('_update_states', {}):
                updates[name].load_state_dict(self._update_states[name])
        return updates[name]

    def run_state_dict(self) -> dict[str, Any]:
        """The state of the ``resume_parts``, and of the updates made so far by the name of their loss."""
        updates = {name: update.state_dict() for name, update in self.__dict__.get('_updates', {}).items()}
        return {**super().run_state_dict(), 'updates': updates}

    def load_run_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``run_state_dict`` gave; an update takes its part when it is first made."""
        super().load_run_state_dict(state)
        self._update_states = state['updates']


class OffPolicyACPolicy(CommonPolicy):
    """
    Overview:
        A subclass writes ``_critic_loss`` and ``_actor_loss``, pure functions of the batch, and how it explores. Its
        model has the parts ``actor`` and ``critic``. Continuous actions lie in [-1, 1]: ``env.use_act_scale`` of an env
        stretches them to its own bounds.
    """

    config = settings(
        learn=dict(
            batch_size=128,
            learning_rate_actor=setting(None, 'number > 0 | None', 'step size of the actor; None: learning_rate'),
            learning_rate_critic=setting(None, 'number > 0 | None', 'step size of the critic; None: learning_rate'),
            algo=dict(
                discount_factor=0.99,
                nstep=1,
                target_theta=0.005,
                actor_update_freq=setting(1, 'int >= 1', 'updates of the critic for one of the actor and the targets'),
            ),
        ),
        collect=dict(
            random_steps=setting(0, 'int >= 0', 'env steps with uniformly random actions at the start of the run'),
            algo=dict(nstep=1),
        ),
    )

    action_kinds: tuple[str, ...] = ('continuous',)
    action_range = (-1.0, 1.0)
    takes_action_mask = False

    resume_parts = ('_explore',)
    _collects_by = _evaluates_by = ''  # the model's action as it is
    _learn_counts = ('_updates_done',)

    # ---- learn ----
    def _init_learn(self) -> None:
        learn = self._cfg.learn
        self._actor_update_freq, self._updates_done = learn.algo.actor_update_freq, 0
        self._draws = Draws()
        self._armor = self._learning_armor('actor', 'critic')
        self._actor_optimizer = self._new_optimizer(self._model.actor, learn.learning_rate_actor)
        self._critic_optimizer = self._new_optimizer(self._model.critic, learn.learning_rate_critic)

    @property
    def _generator(self) -> torch.Generator:
        """Source of the random numbers in the losses."""
        return self._draws.on(self._device)

    def _critic_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        raise NotImplementedError(f'{type(self).__name__}._critic_loss')

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        raise NotImplementedError(f'{type(self).__name__}._actor_loss')

    @staticmethod
    def _q_values(forward: Callable[..., dict], data: dict[str, Any]) -> list[torch.Tensor]:
        """The values of one critic, or of each of several."""
        q_value = forward(data, param={'mode': 'compute_q'})['q_value']
        return [q_value] if isinstance(q_value, torch.Tensor) else list(q_value)

    def _td_loss(
        self, q_values: list[torch.Tensor], next_value: torch.Tensor, data: dict[str, Any]
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        """The summed loss of all critics towards one target, and what is logged of it."""
        rest = (next_value, self._time_first(data), data['done'], data['weight'], data.get('value_gamma'))
        errors = [v_nstep_td_error(v_nstep_td_data(q, *rest), self._gamma, self._nstep) for q in q_values]
        loss: Any = sum(error.loss for error in errors)
        td_error = sum(error.td_error_per_sample.abs() for error in errors) / len(errors)
        return loss, {'td_error': td_error, 'q_value': q_values[0].mean()}

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._minimize(self._critic_loss, data, self._critic_optimizer)
        log = {
            'cur_lr_critic': self._critic_optimizer.param_groups[0]['lr'],
            'cur_lr_actor': self._actor_optimizer.param_groups[0]['lr'],
            'critic_loss': loss,
            'q_value': info['q_value'],
            'critic_grad_norm': info['grad_norm'],
        }
        if self._use_priority:
            log['priority'] = info['td_error']
        self._updates_done += 1
        if self._updates_done % self._actor_update_freq == 0:
            log.update(self._update_actor(data))
            self._armor.target_update(self._model)
        log['total_loss'] = loss + log['actor_loss'] if 'actor_loss' in log else loss
        return log

    def _update_actor(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._minimize(self._actor_loss, data, self._actor_optimizer)
        return {'actor_loss': loss, 'actor_grad_norm': info.pop('grad_norm'), **info}

    def _monitor_vars_learn(self) -> list[str]:
        names = ['total_loss', 'critic_loss', 'actor_loss', 'q_value', 'critic_grad_norm', 'actor_grad_norm']
        return ['cur_lr_actor', 'cur_lr_critic', *names]

    def _learn_parts(self) -> dict[str, Any]:
        own = {'optimizer_actor': self._actor_optimizer, 'optimizer_critic': self._critic_optimizer}
        return {**super()._learn_parts(), **own, 'draws': self._draws}

    # ---- collect and eval ----
    def _acting_armor(self, sampler: str, envs: int = 0, save_states: bool = False, **kwargs: Any) -> Armor:
        """The model without gradients, and the plugin that explores, if there is one."""
        armor = Armor(self._model)
        if sampler:
            armor.add_plugin('main', sampler, **kwargs)
        armor.add_plugin('main', 'grad', enable_grad=False)
        return armor

    def _init_collect(self) -> None:
        self._collect_setting_set = {'random_left'}
        self._random_left = self._cfg.collect.random_steps
        self._explore = Draws()
        super()._init_collect()

    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        output = self._collect_armor.forward(data, data_id=data_id, param={'mode': 'compute_action'})
        if self._random_left > 0:
            self._random_left -= len(output['action'])
            output['action'] = self._random_action(output, self._explore.on(self._device))
        return {'action': output['action']}

    def _random_action(self, output: dict, generator: torch.Generator) -> torch.Tensor:
        return torch.empty_like(output['action']).uniform_(-1, 1, generator=generator)

    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        return {'action': self._eval_armor.forward(data, param={'mode': 'compute_action'})['action']}

    def _get_setting_collect(self, command_info: dict) -> dict:
        """How many random steps are left: by the count of env steps, so that a resumed run knows, too."""
        return {'random_left': max(0, self._cfg.collect.random_steps - command_info['envstep'])}
