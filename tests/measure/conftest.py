from tests.runs.forking import fake_workers_are_forks

__all__ = ["fake_workers_are_forks"]
