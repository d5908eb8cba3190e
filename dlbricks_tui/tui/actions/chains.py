"""Which scopes see the keys at the same time: where no key may mean two things."""

from dlbricks_tui.tui.actions.action import Scope

_WORKBENCH = (Scope.LIST, Scope.WORKBENCH, Scope.EVERYWHERE)
_RESULTS = (Scope.LIST, Scope.RESULTS, Scope.EVERYWHERE)
_CORPUS = (Scope.LIST, Scope.CORPUS, Scope.EVERYWHERE)
_SYSTEMS = (Scope.LIST, Scope.SYSTEMS, Scope.EVERYWHERE)
_RUN = (Scope.LIST, Scope.RUN, Scope.EVERYWHERE)

# From the innermost scope outwards, one for each place where one can be.
CHAINS: tuple[tuple[Scope, ...], ...] = (
    (Scope.MODELS, *_WORKBENCH),
    (Scope.TREE, *_WORKBENCH),
    (Scope.DETAILS, *_WORKBENCH),
    (Scope.ESTIMATE, *_WORKBENCH),
    _RUN,
    (Scope.RESULT_TABLE, *_RESULTS),
    (Scope.RESULT, *_RESULTS),
    (Scope.HISTORY, *_RESULTS),
    (Scope.PAIRS, Scope.LIST, Scope.CONTRAST, Scope.EVERYWHERE),
    (Scope.UNIQUENESS, *_CORPUS),
    (Scope.LIKENESS, *_CORPUS),
    (Scope.SYSTEM_LIST, *_SYSTEMS),
    (Scope.MACHINES, *_SYSTEMS),
    (Scope.DOCTOR, *_SYSTEMS),
    (Scope.COLUMNS, Scope.LIST, Scope.BOX, Scope.DIALOG),
    (Scope.DELETE_RESULTS, Scope.LIST, Scope.DIALOG),
    (Scope.HIDDEN_MARKS, Scope.LIST, Scope.DIALOG),
    (Scope.RUNS, Scope.LIST, Scope.BOX, Scope.DIALOG),
    (Scope.START_RUN, Scope.LIST, Scope.DIALOG),
    (Scope.CANCEL_RUN, Scope.LIST, Scope.DIALOG),
    (Scope.ERROR, Scope.LIST, Scope.DIALOG),
    (Scope.WELCOME, Scope.LIST, Scope.DIALOG),
    (Scope.CONFIG, Scope.LIST, Scope.DIALOG),
    (Scope.PATH, Scope.DIALOG),
    (Scope.FORM, Scope.DIALOG),
    (Scope.PALETTE, Scope.DIALOG),
    # What one types goes into the line: of all others only the keys that are no text are seen.
    (Scope.SEARCH,),
)
TYPING = frozenset({Scope.PATH, Scope.FORM, Scope.PALETTE, Scope.SEARCH})
