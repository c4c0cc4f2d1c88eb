import pytest
import torch

from nervex.graph import matmul
from nervex.graph.matmul import FastMatmul, pays

WIDE = [torch.zeros(256, 256), torch.zeros(256)]


@pytest.fixture
def measured(monkeypatch):
    """Answers of the measurement by shape: (seconds plain, seconds fast, error)."""
    answers = {}
    monkeypatch.setattr(matmul, '_measure', lambda rows, inputs, outputs, threads: answers[rows, inputs, outputs])
    return answers


def test_time_of_all_layers_together_decides(measured):
    measured[256, 256, 256], measured[256, 256, 1] = (3.0, 1.5, 1e-7), (0.1, 0.4, 1e-7)
    assert pays(((256, 256, 1), (256, 256, 256)))  # 3.1 against 1.9
    measured[256, 256, 1] = (0.1, 1.4, 1e-7)
    assert not pays(((256, 256, 1), (256, 256, 256)))  # 3.1 against 2.9: less than a tenth is not worth it


def test_a_larger_error_is_no_bargain(measured):
    measured[256, 256, 256] = (3.0, 1.0, 2e-3)  # as bfloat16 would have
    assert not pays(((256, 256, 256),))


def test_narrow_layers_are_not_even_measured(measured):
    assert not pays(((64, 128, 128), (64, 4, 128)))


def test_the_switch_is_on_inside_only(measured):
    measured[256, 256, 256] = (3.0, 1.0, 1e-7)
    switch = FastMatmul(WIDE, rows=256)
    assert switch.enabled
    with switch:
        assert torch.get_float32_matmul_precision() == 'medium'
    assert torch.get_float32_matmul_precision() == 'highest'
    with pytest.raises(KeyError), switch:
        raise KeyError
    assert torch.get_float32_matmul_precision() == 'highest'


def test_somebody_elses_choice_stays(measured):
    measured[256, 256, 256] = (3.0, 1.0, 1e-7)
    torch.set_float32_matmul_precision('high')
    try:
        with FastMatmul(WIDE, rows=256):
            assert torch.get_float32_matmul_precision() == 'high'
        assert torch.get_float32_matmul_precision() == 'high'
    finally:
        torch.set_float32_matmul_precision('highest')


@pytest.mark.parametrize('kind', [dict(dtype=torch.float64), dict(device='meta')])
def test_other_dtypes_and_devices_are_left_alone(measured, kind):
    assert not FastMatmul([torch.zeros(256, 256, **kind)], rows=256).enabled


def test_a_real_measurement_leaves_the_setting_as_it_was():
    pays(((256, 256, 256),))
    assert torch.get_float32_matmul_precision() == 'highest'
