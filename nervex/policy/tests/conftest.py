"""Every test of a policy works in an empty folder of its own, on one thread."""

import pytest
import torch


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
