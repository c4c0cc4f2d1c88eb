"""What is asked of env subprocesses between two steps, and what happens when one is lost there."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nervex.envs.hosting.host import EnvFault
from nervex.worker.actor.env_manager.worker_pool import WorkerLost


class AsksWorkers:
    """
    Overview:
        Seeds, attributes and methods of envs in workers. A worker that is lost here is noted in ``_gone``; the next
        step tells that its envs failed and replaces it, and so does a reset.
    """

    _gone: dict[int, WorkerLost]

    def _send_seeds(self, ids: list[int]) -> None:
        workers = sorted({self._worker_of[i] for i in ids if i in self._worker_of})
        requests = []
        for w in workers:
            low, chosen = self._pool.workers[w].ids.start, [i for i in self._pool.workers[w].ids if i in ids]
            requests.append(('seed', ([i - low for i in chosen], [self._seeds[i] for i in chosen], self._dynamic_seed)))
        self._answers(workers, requests, needed=False)  # who was lost gets the seed when it is replaced
        for i in ids:
            self._renewed[i] = 0
            if i in self._own:
                self._host.seed(i, self._seeds[i], self._dynamic_seed)

    def _call(self, name: str, calls: list[tuple[tuple, dict]] | None, ids: Iterable[int]) -> list[Any]:
        ids, values = list(ids), {}
        call = dict(zip(ids, calls)) if calls is not None else None
        workers = sorted({self._worker_of[i] for i in ids if i in self._worker_of})
        requests, asked = [], []
        for w in workers:
            chosen = [i for i in self._pool.workers[w].ids if i in ids]
            low = self._pool.workers[w].ids.start
            requests.append(
                ('call', (name, None if call is None else [call[i] for i in chosen], [i - low for i in chosen]))
            )
            asked.append(chosen)
        for chosen, answer in zip(asked, self._answers(workers, requests)):
            values.update(zip(chosen, answer))
        for i in ids:
            if i in self._own:
                values[i] = self._host.ask(i, name, None if call is None else call[i])
        return [values[i] for i in ids]

    def _answers(self, workers: Sequence[int], requests: Sequence[tuple], needed: bool = True) -> list[Any]:
        """
        Overview:
            Ask workers and raise what went wrong there. One that was lost is replaced by the next step or reset.
        Arguments:
            - needed (:obj:`bool`): False: a lost worker is no error, and has no answer
        """
        asked = {w: request for w, request in zip(workers, requests) if self._pool.alive(w)}
        answers = dict(zip(asked, self._pool.ask(list(asked), list(asked.values()), self._cfg['step_timeout'])))
        for w, answer in list(answers.items()):
            if isinstance(answer, WorkerLost):
                self._lost_between(w, answers.pop(w))
        for answer in answers.values():
            if isinstance(answer, EnvFault):
                raise self._as_error(answer)
        if needed and len(answers) < len(workers):
            gone = [self._gone[w] for w in workers if w in self._gone]
            raise gone[0] if gone else WorkerLost('crash', 'a subprocess was lost and is being replaced; try again')
        return list(answers.values())

    def _lost_between(self, w: int, lost: WorkerLost) -> None:
        """A worker was lost while nothing stepped."""
        self._gone[w] = lost

    def advice(self) -> str | None:
        try:
            return super().advice()
        except WorkerLost:
            return None

    def _as_error(self, fault: EnvFault) -> Exception:
        error: Callable = AttributeError if 'AttributeError' in fault.text.rsplit('\n', 1)[-1] else RuntimeError
        return error(f'in the subprocess of env {fault.env_id}:\n{fault.text}')
