"""What is said where there is no data: what was not measured, and the command that measures it."""

import shlex


def bricks_and_models(*options: str, what: str = "No model was measured both by its bricks and end to end") -> str:
    """What estimates are compared with needs both."""
    return f"{what}: {command('run', 'table1', '--end-to-end', *options)} measures both."


def bricks(what: str) -> str:
    """What a latency per layer is needed for."""
    return f"{what}: {command('run', 'table1')} measures every brick once."


def end_to_end() -> str:
    """What latencies of whole models are needed for."""
    return (
        f"No model was measured end to end: {command('run', 'table1', '--end-to-end')} does it here, and "
        f"{command('results', 'import', '--format', 'dlbricks-2019', 'CHECKOUT')} takes up what the authors measured."
    )


def command(*words: str) -> str:
    """A command as pages show it."""
    return f"`{shlex.join(['dlbricks', *words])}`"
