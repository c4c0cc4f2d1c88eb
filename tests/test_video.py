"""Videos of evaluations: which episodes are kept, what is in the files, what is said where something is missing."""

import os
import sys
import tracemalloc
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from nervex.entry import eval, serial_pipeline
from nervex.entry.video import CannotDrawError, WatchedEnv, eval_and_show, picture_of
from nervex.entry.viewers import Album
from nervex.envs import GymEnv
from nervex.envs.tests import fakes
from nervex.utils import NervexError
from nervex.utils.film import padded
from nervex.utils.tests import quick_start


@pytest.fixture
def checkpoint(short_ppo):
    short_ppo.exp_name = 'run'
    return serial_pipeline(short_ppo, seed=0).checkpoint


def film(album, key, level, episode_return, frames=3):
    """An episode whose pictures all have one grey level."""
    album.begin(key)
    for _ in range(frames):
        album.frame(key, np.full((32, 32, 3), level, np.uint8))
    album.end(key, episode_return)


def frames_of(path):
    imageio = pytest.importorskip('imageio.v2')
    with imageio.get_reader(path) as reader:
        return [np.asarray(frame)[..., :3] for frame in reader]


def nervex(*args, **env):
    command = [sys.executable, '-m', 'nervex.entry.cli', '-m', 'eval', *args]
    paths = ':'.join(path for path in sys.path if path)
    kept = {k: v for k, v in os.environ.items() if k not in ('DISPLAY', 'WAYLAND_DISPLAY', 'SDL_VIDEODRIVER')}
    variables = {**kept, 'PYTHONPATH': paths, **env}
    return quick_start.run(command, capture_output=True, text=True, timeout=300, env=variables)


@pytest.mark.parametrize(
    'returns, best, worst',
    [([3, 5, 1, 4], 1, 2), ([5, 5, 1, 1], 0, 3), ([2, 2, 2], 0, 2), ([1, 2, 3], 2, 0), ([-1.5, -2.5], 0, 1)],
)
def test_only_the_best_and_the_worst_episode_stay(returns, best, worst):
    pytest.importorskip('imageio_ffmpeg')
    with Album('video', 'net', 'mp4', 10) as album:
        for n, episode_return in enumerate(returns):
            film(album, n % 2, 40 * n + 20, episode_return)
        videos = album.finish()
    assert videos == {
        'best': f'video/net-best-{returns[best]:g}.mp4',
        'worst': f'video/net-worst-{returns[worst]:g}.mp4',
    }
    assert sorted(os.listdir('video')) == sorted(os.path.basename(path) for path in videos.values())
    for path, n in ((videos['best'], best), (videos['worst'], worst)):
        assert frames_of(path)[0].mean() == pytest.approx(40 * n + 20, abs=6)


def test_one_episode_is_the_best_and_there_is_no_worst():
    pytest.importorskip('imageio_ffmpeg')
    with Album('video', 'net', 'mp4', 10) as album:
        film(album, 0, 100, 7)
        assert list(album.finish()) == ['best']
    assert os.listdir('video') == ['net-best-7.mp4']


def test_nothing_half_made_is_left_after_an_error():
    pytest.importorskip('imageio_ffmpeg')
    with pytest.raises(KeyboardInterrupt), Album('video', 'net', 'mp4', 10) as album:
        film(album, 0, 100, 7)
        album.begin(0)
        album.frame(0, np.zeros((32, 32, 3), np.uint8))
        raise KeyboardInterrupt
    assert os.listdir('video') == []


def test_frames_do_not_pile_up_in_memory():
    """60 frames of 480 x 640 would be 55 MB."""
    pytest.importorskip('imageio_ffmpeg')
    picture = np.zeros((480, 640, 3), np.uint8)
    with Album('video', 'net', 'mp4', 10) as album:
        album.begin(0)
        tracemalloc.start()
        for _ in range(60):
            album.frame(0, picture)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 10e6


def test_sides_are_padded_to_multiples_of_16_with_the_edge():
    picture = np.arange(100 * 130 * 3, dtype=np.uint32).reshape(100, 130, 3).astype(np.uint8)
    wide = padded(picture)
    assert wide.shape == (112, 144, 3)
    assert (wide[:100, :130] == picture).all() and (wide[:100, 143] == picture[:, 129]).all()
    assert padded(np.zeros((32, 48, 3), np.uint8)).shape == (32, 48, 3)


def test_a_folder_that_cannot_be_made_is_one_error():
    pytest.importorskip('imageio_ffmpeg')
    with open('video', 'w', encoding='utf-8'):
        pass
    with Album('video', 'net', 'mp4', 10) as album:
        film(album, 0, 100, 7)
        with pytest.raises(OSError, match='video: the video cannot be written'):
            album.finish()


@pytest.mark.parametrize('kind, frames', [('mp4', 1.0), ('gif', 0.5)])  # a gif has 25 of the 50 frames a second
def test_filmed_episodes_are_those_of_an_evaluation_without_pictures(short_ppo, checkpoint, kind, frames):
    pytest.importorskip('imageio_ffmpeg')
    plain = eval(short_ppo, 3, load_path=checkpoint, n_episode=7)
    shown = eval_and_show(short_ppo, 3, load_path=checkpoint, n_episode=7, video=kind)
    assert shown.evaluation.returns.tolist() == plain.returns.tolist()
    assert shown.videos['best'].startswith('run/video/')
    assert f'-best-{plain.returns.max():g}.{kind}' in shown.videos['best']
    assert f'-worst-{plain.returns.min():g}.{kind}' in shown.videos['worst']
    pictures = frames_of(shown.videos['best'])
    length = plain.lengths[plain.returns.argmax()] + 1  # one picture before the first step
    assert abs(len(pictures) - frames * length) <= 1
    assert pictures[0].shape == (320, 480, 3) and (pictures[0] != pictures[-1]).any()


def test_envs_of_subprocesses_are_filmed_in_this_process(short_ppo, checkpoint):
    pytest.importorskip('imageio_ffmpeg')
    short_ppo.env.env_manager_type, short_ppo.env.manager = 'subprocess', dict(envs_per_worker=2, hybrid=True)
    shown = eval_and_show(short_ppo, load_path=checkpoint, n_episode=2)
    assert set(shown.videos) == {'best', 'worst'} and short_ppo.env.env_manager_type == 'subprocess'


class AloneEnv(CartPoleEnv):
    """Of which a process can have one."""

    one_a_process = True
    open_now = 0

    def reset(self, **kwargs):
        AloneEnv.open_now += not self.__dict__.get('runs', False)
        self.runs = True
        assert AloneEnv.open_now == 1
        return super().reset(**kwargs)

    def close(self):
        AloneEnv.open_now -= self.__dict__.get('runs', False)
        self.runs = False
        super().close()


def test_an_env_of_which_a_process_can_have_one_is_filmed_alone(short_ppo, checkpoint):
    pytest.importorskip('imageio_ffmpeg')
    short_ppo.env.env_manager_type = 'subprocess'
    shown = eval_and_show(short_ppo, env_setting=(AloneEnv, [{}] * 2, [{}] * 2), load_path=checkpoint, n_episode=2)
    assert set(shown.videos) == {'best', 'worst'} and AloneEnv.open_now == 0


class PaidEach(fakes.FaultyTeam):
    """Both agents get 1 in each of three steps; the team's return is the mean, 3."""

    def step(self, action):
        return super().step(action)._replace(reward=np.ones(2, np.float32))

    def render(self):
        return np.zeros((32, 32, 3), np.uint8)


def test_an_episode_of_a_team_goes_by_the_return_of_its_evaluation():
    ended = []
    viewer = SimpleNamespace(begin=lambda key: None, frame=lambda key, picture: None, end=lambda *of: ended.append(of))
    env = WatchedEnv(PaidEach({}), [viewer])
    env.reset()
    assert [env.step(np.zeros(2, np.int64)).done for _ in range(3)] == [False, False, True]
    assert ended == [(id(env), 3.0)]


def test_videos_go_where_replay_path_says(short_ppo, checkpoint):
    pytest.importorskip('imageio_ffmpeg')
    short_ppo.env.replay_path = 'films'
    shown = eval_and_show(short_ppo, load_path=checkpoint, n_episode=2)
    assert shown.videos['best'].startswith('films/')


def test_command_prints_where_the_videos_are(checkpoint):
    pytest.importorskip('imageio_ffmpeg')
    result = nervex('-c', 'cartpole_ppo', '--load', checkpoint, '--episodes', '2', '--video')
    assert result.returncode == 0, result.stderr
    lines = dict(line.split(' episode: ') for line in result.stdout.splitlines() if ' episode: ' in line)
    assert set(lines) == {'best', 'worst'} and all(os.path.getsize(path) > 500 for path in lines.values())
    assert 'mean' in result.stdout and not result.stderr


def test_without_imageio_one_line_names_the_extra(checkpoint, tmp_path):
    (tmp_path / 'fake').mkdir()
    (tmp_path / 'fake' / 'imageio.py').write_text("raise ImportError('not here')", encoding='utf-8')
    paths = ':'.join([str(tmp_path / 'fake'), *(path for path in sys.path if path)])
    result = nervex('-c', 'cartpole_ppo', '--load', checkpoint, '--video', PYTHONPATH=paths)
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1
    assert "pip install 'nervex[video]'" in result.stderr and not result.stdout


def test_render_without_a_screen_is_one_clear_line(checkpoint):
    result = nervex('-c', 'cartpole_ppo', '--load', checkpoint, '--render')
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1
    assert 'no screen' in result.stderr and '--video' in result.stderr and not result.stdout


def test_render_plays_one_episode_behind_the_other(checkpoint):
    pytest.importorskip('pygame')
    args = ('-c', 'cartpole_ppo', '--load', checkpoint, '--episodes', '2', '--render')
    result = nervex(*args, SDL_VIDEODRIVER='dummy')
    assert result.returncode == 0 and '2 episodes: mean' in result.stdout, result.stderr


def test_closing_the_window_interrupts(monkeypatch):
    pygame = pytest.importorskip('pygame')
    from contextlib import closing

    from nervex.entry.viewers import Window

    monkeypatch.setenv('SDL_VIDEODRIVER', 'dummy')
    with closing(Window(1000)) as window:
        window.frame(0, np.zeros((32, 48, 3), np.uint8))
        pygame.event.post(pygame.event.Event(pygame.QUIT))
        with pytest.raises(KeyboardInterrupt):
            window.frame(0, np.zeros((32, 48, 3), np.uint8))


class Drawing:
    """An env that answers the given picture."""

    def __init__(self, picture):
        self.picture = picture

    def render(self):
        return self.picture


def test_picture_of_an_env_of_ones_own():
    picture = np.zeros((8, 8, 3), np.uint8)
    assert picture_of(Drawing(picture)) is picture
    assert picture_of(Drawing([picture, picture + 1])).max() == 1  # old gym answered a list of frames


@pytest.mark.parametrize('env, said', [(Drawing(None), 'answered None'), (object(), 'cannot draw itself')])
def test_an_env_without_a_picture_says_so(env, said):
    with pytest.raises(CannotDrawError, match=said):
        picture_of(env)


def test_a_gymnasium_env_draws_itself(checkpoint, short_ppo):
    pytest.importorskip('pygame')
    pytest.importorskip('imageio_ffmpeg')
    short_ppo.env = dict(env_type='gym', env_id='CartPole-v1', evaluator_env_num=1)
    shown = eval_and_show(short_ppo, load_path=checkpoint, n_episode=1)
    picture = frames_of(shown.videos['best'])[0]
    assert picture.shape == (400, 608, 3) and picture.std() > 5  # 400 x 600, padded


def test_a_gym_object_made_without_pictures_says_what_to_do(short_ppo, checkpoint):
    short_ppo.env = dict(env_type=None, evaluator_env_num=1)

    def env_fn(cfg):
        return GymEnv(gymnasium.make('CartPole-v1'))

    with pytest.raises(CannotDrawError, match='rgb_array'), pytest.warns(UserWarning, match='render'):
        eval_and_show(short_ppo, env_setting=(env_fn, [{}], [{}]), load_path=checkpoint, n_episode=1)


@pytest.mark.parametrize('config', ['pendulum_sac', 'bitflip_her_dqn'])
def test_the_other_built_in_envs_draw_themselves_too(config):
    pytest.importorskip('imageio_ffmpeg')
    short = ('commander.max_env_step=1', 'exp_name=run')
    saved = serial_pipeline(config, seed=0, overrides=short).checkpoint
    shown = eval_and_show(config, load_path=saved, n_episode=2)
    assert shown.videos and all(len(frames_of(path)) > 1 for path in shown.videos.values())


class ThreeSteps(gymnasium.Env):
    """A Gym object that draws itself."""

    observation_space, action_space = gymnasium.spaces.Box(-1, 1, (1,)), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.zeros(1, np.float32), 0.0, self.steps == 3, False, {}

    def render(self):
        return np.full((32, 32, 3), 60 * self.steps, np.uint8)


def test_record_video_films_every_whole_episode():
    pytest.importorskip('imageio_ffmpeg')
    wrappers = [{'type': 'record_video', 'folder': 'films', 'fps': 5.0}]
    with GymEnv(dict(env_fn=ThreeSteps, wrappers=wrappers)) as env:
        for _ in range(2):
            env.reset()
            while not env.step(0).done:
                pass
        env.reset()
        env.step(0)  # not an episode
    names = sorted(os.listdir('films'))
    assert [name.split('_')[1] for name in names] == ['0', '1']
    assert [len(frames_of(os.path.join('films', name))) for name in names] == [4, 4]  # the first and three steps


@pytest.mark.parametrize('kind', ['base', 'sync_subprocess'])
def test_replay_path_films_evaluations_while_training_and_in_eval_mode(kind):
    pytest.importorskip('imageio_ffmpeg')
    overrides = (
        *('commander.max_env_step=64', 'evaluator.eval_freq=4', 'evaluator.n_episode=2', 'env.evaluator_env_num=2'),
        *(f'env.env_manager_type={kind}', 'exp_name=run', 'env.replay_path=films', 'policy.learn.init_data_count=0'),
    )
    result = serial_pipeline('cartpole_dqn', seed=0, overrides=overrides)
    films = [os.path.join('films', name) for name in sorted(os.listdir('films'))]
    assert len(films) > 1 and all(len(frames_of(path)) > 5 for path in films)
    before = len(films)
    played = eval('cartpole_dqn', load_path=result.checkpoint, n_episode=2, overrides=overrides)
    (new,) = set(os.listdir('films')) - {os.path.basename(path) for path in films}
    assert len(os.listdir('films')) == before + 1
    assert len(frames_of(os.path.join('films', new))) == played.lengths[0] + 1  # of its first env; the first picture


def test_replay_path_of_an_env_that_cannot_draw_itself_says_so(tmp_path):
    cfg = dict(
        env=dict(env_type=fakes.CounterEnv, replay_path='films', evaluator_env_num=1),
        policy=dict(policy_type='dqn'),
        actor=dict(n_sample=8),
    )
    with pytest.raises(NervexError, match=r'env.replay_path: CounterEnv cannot save replays.*leave replay_path out'):
        serial_pipeline(cfg, seed=0, overrides=('commander.max_env_step=8', 'exp_name=run'))
