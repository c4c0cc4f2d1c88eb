import pytest
import torch

from nervex.graph import matmul
from nervex.graph.matmul import FastMatmul, pays

WIDE = [torch.zeros(256, 256), torch.zeros(256)]


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    """A CPU for which the rule was measured, whatever the tests run on."""
    monkeypatch.setattr(matmul, '_vendor', lambda: 'AuthenticAMD')
    monkeypatch.setattr(torch.backends.cpu, 'get_cpu_capability', lambda: 'AVX512')
    monkeypatch.setattr(matmul, '_is_exact', lambda: True)


@pytest.mark.parametrize(
    'shapes, expected',
    [
        ([(256, 256, 256)], True),  # 16.8 million
        ([(256, 3, 256), (256, 256, 256), (256, 256, 1)], True),  # 17.0 million in three layers: 5.7 in the mean
        ([(64, 4, 128), (64, 128, 128), (64, 128, 2)], False),  # 1.1 million in three
        ([(128, 128, 128)], True),  # 2.1 million
        ([(128, 128, 128), (128, 128, 1)], False),  # 2.1 million in two layers: 1.05 in the mean
        ([(1, 256, 256)], False),
        ([], False),
    ],
)
def test_the_mean_size_of_the_layers_decides(shapes, expected):
    assert pays(shapes) is expected


@pytest.mark.parametrize('vendor, capability', [('GenuineIntel', 'AVX512'), ('AuthenticAMD', 'AVX2'), ('', 'DEFAULT')])
def test_other_cpus_stay_with_mkl_unless_told_otherwise(monkeypatch, vendor, capability):
    monkeypatch.setattr(matmul, '_vendor', lambda: vendor)
    monkeypatch.setattr(torch.backends.cpu, 'get_cpu_capability', lambda: capability)
    assert not FastMatmul(WIDE, 256).enabled and FastMatmul(WIDE, 256, 'onednn').enabled


def test_a_setting_overrules_the_shapes():
    assert FastMatmul(WIDE, 1, 'onednn').enabled and not FastMatmul(WIDE, 256, 'mkl').enabled
    with pytest.raises(ValueError, match="did you mean 'onednn'"):
        FastMatmul(WIDE, 1, 'onednm')


def test_a_cpu_that_would_round_to_bfloat16_is_left_alone(monkeypatch):
    monkeypatch.setattr(matmul, '_is_exact', lambda: False)
    assert not FastMatmul(WIDE, 256).enabled and not FastMatmul(WIDE, 256, 'onednn').enabled


def test_the_switch_is_on_inside_only():
    switch = FastMatmul(WIDE, rows=256)
    assert switch.enabled
    with switch:
        assert torch.get_float32_matmul_precision() == 'medium'
    assert torch.get_float32_matmul_precision() == 'highest'
    with pytest.raises(KeyError), switch:
        raise KeyError
    assert torch.get_float32_matmul_precision() == 'highest'


def test_somebody_elses_choice_stays():
    torch.set_float32_matmul_precision('high')
    try:
        with FastMatmul(WIDE, rows=256):
            assert torch.get_float32_matmul_precision() == 'high'
        assert torch.get_float32_matmul_precision() == 'high'
    finally:
        torch.set_float32_matmul_precision('highest')


@pytest.mark.parametrize('kind', [dict(dtype=torch.float64), dict(device='meta')])
def test_other_dtypes_and_devices_are_left_alone(kind):
    assert not FastMatmul([torch.zeros(256, 256, **kind)], rows=256).enabled


def test_looking_for_the_rounding_leaves_the_setting_as_it_was(monkeypatch):
    monkeypatch.undo()
    matmul._is_exact.cache_clear()
    assert matmul._is_exact() in (True, False) and isinstance(matmul._vendor(), str)
    assert torch.get_float32_matmul_precision() == 'highest'
