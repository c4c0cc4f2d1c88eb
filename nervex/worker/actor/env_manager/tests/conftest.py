"""Every kind of env manager as a fixture."""

import pytest

from nervex.worker.actor.env_manager.tests.managers import KINDS, PROCESSES, SINGLE


@pytest.fixture(params=list(KINDS))
def kind(request):
    return request.param


@pytest.fixture(params=SINGLE)
def single_kind(request):
    return request.param


@pytest.fixture(params=PROCESSES)
def process_kind(request):
    return request.param
