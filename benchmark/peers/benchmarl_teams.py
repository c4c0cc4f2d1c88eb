"""
The training loops of teams in BenchMARL (on TorchRL), by the Python that ``BENCHMARL_PYTHON`` names: it needs an older
PettingZoo than nervex, so it has a virtual environment of its own. Run as a script, by that Python, this file trains
once and prints a line of JSON.

Settings are those of ``peers/settings.py`` with what BenchMARL counts in frames: QMIX learns once an episode from
32 * 25 steps, MAPPO four times from the ten episodes of a round. Its MAPPO has no memory here, which is less work.
"""

import json
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from peers.elsewhere import cases  # noqa: E402

CASES = cases(__file__, 'BENCHMARL_PYTHON', ('qmix', 'mappo'))


def main(name: str, seed: int) -> None:
    """Train once, in BenchMARL's own loop; the clock also runs while its env processes end."""
    import torch
    from benchmarl.algorithms import MappoConfig, QmixConfig
    from benchmarl.environments import PettingZooTask
    from benchmarl.experiment import Experiment, ExperimentConfig
    from benchmarl.models.mlp import MlpConfig
    from clock import Clock
    from peers import settings
    from torch import nn

    torch.set_num_threads(1)
    chosen = getattr(settings, name.upper())
    config, task = ExperimentConfig.get_from_yaml(), PettingZooTask.SIMPLE_SPREAD.get_from_yaml()
    task.config['max_cycles'] = chosen.episode
    config.loggers, config.evaluation, config.render, config.create_json = [], False, False, False
    config.prefer_continuous_actions, config.max_n_frames = False, chosen.env_steps
    config.lr, config.gamma, config.clip_grad_val = chosen.learning_rate, chosen.gamma, chosen.grad_clip_norm
    if name == 'qmix':
        algorithm = QmixConfig.get_from_yaml()
        config.off_policy_collected_frames_per_batch, config.off_policy_n_envs_per_worker = chosen.episode, 1
        config.off_policy_train_batch_size = chosen.batch_size * chosen.episode
        config.off_policy_memory_size, config.off_policy_n_optimizer_steps = chosen.buffer_size * chosen.episode, 1
        config.exploration_eps_init, config.exploration_eps_end = 1.0, chosen.epsilon_end
        config.exploration_anneal_frames = chosen.epsilon_steps
    else:
        algorithm, frames = MappoConfig.get_from_yaml(), chosen.envs * chosen.episode
        config.on_policy_collected_frames_per_batch, config.on_policy_n_envs_per_worker = frames, chosen.envs
        config.on_policy_minibatch_size, config.on_policy_n_minibatch_iters = frames, chosen.epochs
    net = MlpConfig(num_cells=[chosen.hidden] * 2, layer_class=nn.Linear, activation_class=nn.ReLU)
    with tempfile.TemporaryDirectory() as config.save_folder:
        experiment, clock = Experiment(task, algorithm, net, seed, config, critic_model_config=net), Clock()
        with clock:
            experiment.run()
    print('\n' + json.dumps({'count': experiment.total_frames, **vars(clock)}))


if __name__ == '__main__':
    main(sys.argv[1], int(sys.argv[2]))
