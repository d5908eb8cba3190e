"""The page of all files: text by hand, and fields and events from the code."""

from dlbricks_tui.analysis.proving import PROOF
from dlbricks_tui.api.suites import EXPORT
from dlbricks_tui.fleet.request import EVENTS as FLEET_EVENTS
from dlbricks_tui.fleet.request import FleetHostState, HostEntry
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.jobs.events import EventKinds, event_kinds
from dlbricks_tui.jobs.folder import JobState, State, Tally
from dlbricks_tui.language.orders import LANGUAGE
from dlbricks_tui.runs.events import EVENTS
from dlbricks_tui.scenarios.scenario import LOAD_TEST
from dlbricks_tui.share.suite_files import Meaning, SuiteBrick
from dlbricks_tui.store.documents import TABLES
from dlbricks_tui.store.records import Statistics
from dlbricks_tui.traces.trace import TRACE
from docs.generators.fields import field_table, fields_of, sentence_of, values_of
from docs.generators.markdown import MARK, table

HEAD = f"""{MARK}# Files

## Your data

Results, caches, settings and logs are in one folder. The first of these counts:

1. `--data-dir DIR`, before or after the command;
2. the environment variable `DLBRICKS_DATA_DIR`;
3. `$XDG_DATA_HOME/dlbricks`, which is `~/.local/share/dlbricks` by default; on macOS `~/Library/Application
   Support/dlbricks`.

An empty name, such as that of an unset shell variable, is an error. Only regular files are read: a pipe or a device in the
place of a file is refused.

| inside | contents |
|---|---|
| `store/` | [every result](#results-store): back it up |
| `suites/` | the [keys](#suites) to exported suites: back them up, and keep them secret |
| `runs/`, `fleets/`, `jobs/` | [requests, states and events](#job-folders) of runs, of fleet runs and of other jobs, without results |
| `parcels/` | what a driver of a fleet has sent to this host |
| `certificates/` | certificates and private keys of fleets: keep them secret |
| `allowed_signers`, `minisign/` | the [signers that you trust](#signatures) |
| `scenarios/` | the logs of LoadGen, a folder for each load test |
| `traces/` | traces, a file each: delete them as you like |
| `model-folders.json`, `runtimes.json`, `input-shapes.json` | the [models, runtimes and input shapes](#small-files) that you gave |
| `config.toml`, `themes/` | your [settings](settings.md) and themes |
| `prices.toml` | your [prices](#small-files) of machines |
| `view.json` | [columns, order and sizes](#small-files) of the workbench |
| `pictures/`, `copied.txt` | pictures and copied text from the workbench |
| `cache/` | data that can be computed again; delete it at any time |
| `log/errors.log` | tracebacks of faults in dlbricks: add the last one to a bug report |
"""
STORE = """
## Results store

The store is a [TinyDB](https://tinydb.readthedocs.io) database; `dlbricks_tui.store.open_results()` opens it in Python
([API](api.md)). In `store/`:

| file | contents |
|---|---|
| `results-N.json` | the TinyDB file of compaction N, with a line per document |
| `journal-N.jsonl` | the changes after it, one per line; a store without compactions has only `journal-0.jsonl` |
| `index.bin` | the columns of all results, for quick opening; built again if it is missing or stale |
| `lock` | the file that writers lock; it is never replaced |
| `set-aside-N.txt` | the damaged lines that compaction N + 1 left out, with the reasons |

The highest N is in use. The generation before it is kept until the next compaction, to replace damaged records. So never
delete a single one of these files; to start afresh, move the folder away.

- **A line** is a JSON object that begins with `check`, the CRC-32 of all bytes after that field, and `schema`, the version
  of its fields. A document follows with `table`, `doc_id` and its fields. A line with `removed`, `cleared` or `dropped` in
  place of `table` removes a document, all documents of a table, or a table.
- **A result is on the disk before it is reported.** Power failures, `kill -9` and full disks lose no reported result.
- **Several processes may write.** Each holds the lock meanwhile; readers never take it.
- **Damage stays local.** A line that fails its checksum is counted, named and set aside. `dlbricks results verify` reads
  everything.
- **Clocks may be wrong.** A record that is dated in the future counts as old as the record stored before it.
  `dlbricks results verify --correct-dates` stores that date.
- **Deleted results** leave the disk with the second compaction afterwards.
- **Other versions.** A store of a newer dlbricks is refused with one message and not changed.

The tables follow. `uuid` is 32 hexadecimal digits: of a brick, system or runtime the beginning of the SHA-256 of its
content, else random. Every record that has `when` (ISO 8601, UTC) has it too. `Facts` and `Constants` are JSON objects.
"""
RESULTS = """
## Result files

`dlbricks results export FILE` writes one, and `dlbricks results import` reads it:

| ending | contents |
|---|---|
| `.json`, `.json.gz`, none | everything: a TinyDB file with the tables above, except `imports` |
| `.csv` | a row per result with all [columns](results.md#columns), as `results list --csv` |
| `.jsonl` | the same as a JSON object per line |

A JSON file describes itself: it has the brick, system, runtime, run, provenance and failures of its results.
The same results give the same bytes. An import recognises known records by their id; if the content of a known id differs,
both are kept. Refused, each with a line:

- a brick whose key is not the hash of its form;
- a negative sample, or statistics that do not follow from the samples;
- a date in the future;
- a result whose brick, system or runtime neither the file nor the store describes;
- a known system, or this host, with another processor or number of cores;
- a load test whose latencies, requests per second or verdict do not fit together;
- a packed file that unpacks to more than thirty times its size.

### Signatures

`--sign KEY` writes a detached signature beside the file:

| KEY | signature | made by |
|---|---|---|
| a private key of OpenSSH, or the `.pub` file of a key in ssh-agent | `FILE.sig` | `ssh-keygen -Y sign -n dlbricks-results` |
| a secret key of minisign | `FILE.minisig` | `minisign -S` |

The trusted signers are in [your data folder](#your-data): `allowed_signers` in OpenSSH's format, one line each, such as
`ann@example.org ssh-ed25519 AAAA...`, and `minisign/NAME.pub`. `--signers FILE` adds one for one import.

### Baselines of checks

`dlbricks check --against FILE` takes a result file, or an evaluation file with results. From a result file it takes the
whole models: `dlbricks results export baseline.json.gz of=model`.

## Evaluation files

TOML files, described in [the file of an evaluation](evaluation-file.md). `dlbricks evaluate --schema` prints their JSON
schema, which editors use.

## Hosts file

A TOML file with a table `[[host]]` for each host of a fleet. A table `[defaults]` holds keys of all hosts, except `name`
and `address`. Only `name` is required. What is empty comes from your SSH configuration.

```toml
[defaults]
user = "ubuntu"
jump = "gateway.example.org"

[[host]]
name = "c7i"
address = "10.0.0.4"
price_per_hour = 0.1785
```

"""
SUITES = """
## Suites

`dlbricks suite export` writes a zip file, or a folder if the name does not end in `.dlbricks`:

| file | contents |
|---|---|
| `suite.json` | `format` (`dlbricks-suite`), `schema`, `suite` (its id), `level`, `precision`, `frameworks` and `bricks` |
| `bricks/ID-symbol.json`, `bricks/ID.onnx` | a network each, without weights, names and attributes of yours |

Each of the `bricks` has these fields. `layers` is 1, and the file does not tell which of its layers is the brick. `cold` is
true if its weights are in no cache when it runs. `bytes` and `sha256` are of its file.

"""
KEY = """
The key `suites/ID.key.json` in your data folder has `format`, `schema`, `suite`, `manifest_sha256`, `level`, `models`, the
ids of the `decoys`, and `meanings`: for each other id

"""
SUITE_RESULTS = """
The results that `dlbricks suite run` writes are a JSON object with `format` (`dlbricks-suite-results`), `schema`, `suite`,
`manifest_sha256`, the `system`, and for each runtime its measurements and failures, as records of the store.
They name bricks by their keys, and networks that could not be read by their ids.

## Job folders

Each job has a folder in your data folder: `runs/ID` a run, `fleets/ID` a fleet run, and `jobs/ID` a proof, load test,
trace, export of a suite, measurement of peaks or of language models. Folders of ended jobs can be deleted: they hold no
results. Of each kind in `jobs/`, the last 20 are kept. Only you can read that folder: the request of an export has the seed
of its suite.

| file | contents |
|---|---|
| `request.json` | what was asked for |
| `state.json` | the state, as below |
| `events.jsonl` | all events, one JSON object per line |
| `worker.log`, `output.log` | the output of the framework, and of the process |
| `lock`, `pause` | held while a process works on the job; there while it is paused |
| `seen` | there once a viewer has followed the job to its end |
| `commands.jsonl` | of a fleet run: what its user asks of single hosts |
| `suite-bricks.json` | of a run of a suite: the brick here behind each brick of the suite |

`state.json`:

"""
EVENTS_TEXT = """
An event is a JSON object with `event`, its name, `when`, and these fields. Readers skip fields that they do not know, and
count events that they cannot read.

"""
SMALL = """
## Small files

| file | contents |
|---|---|
| `model-folders.json` | lists of paths: `folders` and `models` that you added, and `left_out`: files in these folders that you removed |
| `runtimes.json` | `schema`, and `runtimes`: what `dlbricks runtimes list --json` shows of those that you added |
| `input-shapes.json` | by the hash of a model's file: the shape of each input, or its values |
| `view.json` | of the workbench: `columns` and `order` of the list of models, `sizes` of the panels by layout (`left` and `right` in columns, `upper` in percent), `recent`: path and name of the models opened lately, `unfolded`: groups of models |
| `prices.toml` | `[dollars_per_hour]`: a price by id, name or instance type of a system, such as `"c5.xlarge" = 0.17`; it overrides the built-in one |

A missing or unreadable `view.json` is replaced; the others are refused with a line.
"""


KINDS = {
    "runs": EVENTS,
    "proofs": PROOF.events,
    "load tests": LOAD_TEST.events,
    "traces": TRACE.events,
    "language models": LANGUAGE.events,
    "exports of suites": EXPORT.events,
    "fleet runs": FLEET_EVENTS,
}


def page() -> str:
    """Return the text of the page."""
    shared = event_kinds()
    return "".join(
        [
            HEAD,
            STORE,
            *(f"\n### Table {name}\n\n{_about(kind)}\n\n{field_table(kind)}" for name, kind in TABLES.items()),
            f"\n### Statistics\n\n{_about(Statistics)}\n\n{field_table(Statistics)}",
            RESULTS,
            field_table(HostEntry),
            SUITES,
            field_table(SuiteBrick),
            KEY,
            field_table(Meaning),
            SUITE_RESULTS,
            field_table(JobState),
            f"\n`Tally`: {_about(Tally)} The states are {_words(State)}, and the kinds {_words(WorkKind)}.\n",
            "\n### Events of all jobs\n",
            EVENTS_TEXT,
            _events(shared),
            *(f"\n### Events of {name}\n\n{_events(_without(kinds, shared))}" for name, kinds in KINDS.items()),
            f"\nThe states of a host are {_words(FleetHostState)}.\n",
            SMALL,
        ]
    )


def _about(kind: type) -> str:
    """Return the docstring of a class, with its lists."""
    text = (kind.__doc__ or "").strip()
    return "\n".join(line.strip() for line in text.splitlines())


def _without(kinds: EventKinds, others: EventKinds) -> EventKinds:
    return {name: kind for name, kind in kinds.items() if name not in others}


def _words(kind: type[State] | type[FleetHostState] | type[WorkKind]) -> str:
    return ", ".join(f"`{value}`" for value, _ in values_of(kind))


def _events(kinds: EventKinds) -> str:
    rows = [
        (
            f"`{name}`",
            sentence_of(kind),
            ", ".join(f"`{it.name}`" for it in fields_of(kind) if it.name != "when"),
        )
        for name, kind in kinds.items()
        # Bases of others are never written.
        if not any(kind in it.__mro__[1:] for it in kinds.values())
    ]
    return table(("event", "meaning", "fields"), rows)
