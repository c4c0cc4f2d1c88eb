import pytest
import torch

from nervex.rl_utils import GaussianNoise, OUNoise, create_noise_generator
from nervex.rl_utils.transforms import beta_function_map
from nervex.utils.errors import UnknownNameError


def test_gaussian_moments_and_seed():
    noise = GaussianNoise(mu=2.0, sigma=0.5, seed=1)((10000,))
    assert noise.mean().item() == pytest.approx(2.0, abs=0.02) and noise.std().item() == pytest.approx(0.5, abs=0.02)
    assert torch.equal(noise, GaussianNoise(mu=2.0, sigma=0.5, seed=1)((10000,)))
    assert not torch.equal(noise, GaussianNoise(mu=2.0, sigma=0.5, seed=2)((10000,)))


def test_global_generator_is_left_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    GaussianNoise()((3,)), OUNoise()((3,))
    assert torch.equal(before, torch.get_rng_state())


def test_ou_drift_by_hand():
    # without noise: x = 1, then x + .5 * (3 - x) * .1 = 1.1, then 1.195; reset starts again; another shape too
    noise = OUNoise(mu=3.0, sigma=0.0, theta=0.5, dt=0.1, x0=1.0)
    assert [noise((1,)).item() for _ in range(2)] == pytest.approx([1.1, 1.195])
    assert noise((2,)).tolist() == pytest.approx([1.1, 1.1])
    noise.reset()
    assert noise((2,)).tolist() == pytest.approx([1.1, 1.1])


def test_ou_results_are_not_changed_later():
    noise = OUNoise()
    first = noise((4,))
    kept = first.clone()
    noise((4,))
    assert torch.equal(first, kept)


def test_noise_by_name():
    assert isinstance(create_noise_generator('gauss', {'sigma': 0.1}), GaussianNoise)
    assert isinstance(create_noise_generator('ou'), OUNoise)
    with pytest.raises(UnknownNameError, match="did you mean 'gauss'"):
        create_noise_generator('gaus')
    with pytest.raises(ValueError, match='sigma'):
        GaussianNoise(sigma=-1.0)


def test_beta_functions_by_hand():
    x = torch.tensor([0.0, 0.25, 1.0])
    assert beta_function_map['uniform'](x).tolist() == [0.0, 0.25, 1.0]
    assert beta_function_map['CVaR'](x, 0.5).tolist() == [0.0, 0.125, 0.5]
    assert beta_function_map['Pow'](x, 1.0).tolist() == [0.0, 0.5, 1.0]  # x^(1/2)
    assert beta_function_map['Pow'](x, -1.0).tolist() == pytest.approx([0.0, 1 - 0.75**0.5, 1.0])
    # eta .5: .5 / (.5 + .75^.5)^2
    assert beta_function_map['CPW'](x, 0.5).tolist() == pytest.approx([0.0, 0.5 / (0.5 + 0.75**0.5) ** 2, 1.0])


def test_ou_may_start_from_a_tensor():
    # without noise and at rest (mu = x0 in every entry) nothing moves
    start = torch.tensor([1.0, 1.0])
    noise = OUNoise(mu=1.0, sigma=0.0, x0=start)
    assert noise((3, 2)).tolist() == [[1.0, 1.0]] * 3 and start.tolist() == [1.0, 1.0]
