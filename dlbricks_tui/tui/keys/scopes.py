"""All actions, each declared once: bindings, key bar, palette, help and docs/reference/keys.md derive from them.

They are in the order in which the help and the key bar show them: of each screen its own before those of its panels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import cleandoc

from textual.binding import Binding, BindingType


@dataclass(frozen=True, slots=True)
class Action:
    """A command of a scope with its keys, by Textual's names; the first key is the one that is shown."""

    scope: Scope
    method: str
    keys: tuple[str, ...]
    label: str
    help: str
    # What Textual runs.
    call: str
    # Shown in the key bar if there is room.
    footer: bool
    # Shown there before those of the panel with the focus, so that a narrow terminal shows it too.
    first: bool
    # True if it also works in front of boxes and while the user types; only for the scope `app`.
    always: bool

    @property
    def id(self) -> str:
        """The names of the scope and of the method, such as `models.mark`, as in the keymap of the config file."""
        return f"{self.scope.name}.{self.method}"

    @property
    def binding(self) -> Binding:
        # Textual separates keys by commas.
        keys = ",".join("comma" if key == "," else key for key in self.keys)
        return Binding(keys, self.call, self.label, self.footer, tooltip=self.help, id=self.id, priority=self.always)


# Every screen with several panels has these.
_PANEL_STEPS = """next_panel=step_panel(1)       tab        next panel      Go to the next panel.
    previous_panel=step_panel(-1)  shift+tab  previous panel  Go to the previous panel."""


class Scope:
    """A place where actions apply: the program, a screen, a panel, a list or a box."""

    def __init__(self, table: str, *outer: Scope, typing: bool = False) -> None:
        """The table begins with the name and the heading in the help; a row for each action follows.

        A row has the method, the keys with single blanks between them, the label and the help, with two blanks or more
        between them. Lines that are indented further continue it.

        - `next=step(1)` is a method and the call that Textual runs in its place; `screen.` is the screen of a panel.
        - `*label` is shown in the key bar, and `!label` there before others.
        - `~label` works everywhere, also in front of boxes and while the user types.

        The keys of the scopes in `outer` also work here, from the inside out; `typing` is True if the user types text.
        """
        lines: list[str] = re.split(r"\n(?! )", cleandoc(table.replace("PANEL_STEPS", _PANEL_STEPS)))
        self.name, self.title = lines[0].split(": ")
        self.outer = outer
        self.typing = typing
        self.actions = tuple(self._action(*re.split(" {2,}", re.sub(r"\n +", " ", row))) for row in lines[1:])

    def _action(self, method: str, keys: str, label: str, told: str) -> Action:
        method, _, call = method.partition("=")
        sign, label = (label[0], label[1:]) if label[0] in "*!~" else ("", label)
        # All actions that go to a panel share a method.
        call = call or (f"go_to('{self.name}.{method}')" if method.startswith("go_to_") else method)
        return Action(
            self, method, tuple(keys.split()), label, told, call, sign in ("*", "!"), sign == "!", sign == "~"
        )

    @property
    def bindings(self) -> list[BindingType]:
        return [it.binding for it in self.actions]

    def panel(self, table: str) -> Scope:
        """Return the scope of a panel on this screen."""
        return Scope(table, LIST, self, EVERYWHERE)


def _screen(table: str) -> Scope:
    return Scope(table, LIST, EVERYWHERE)


def _box(table: str) -> Scope:
    return Scope(table, LIST, DIALOG)


def _searched_box(table: str) -> Scope:
    return Scope(table, LIST, BOX, DIALOG)


def _typing(table: str) -> Scope:
    return Scope(table, DIALOG, typing=True)


EVERYWHERE = Scope("""app: Everywhere
    show_help        ? f1      !help     List the keys that work here.
    search           /         *search   Search in the current panel, or among the models.
    find_command     : ctrl+p  *palette  Find a command by its name.
    mark             space     *mark     Mark the row, or unmark it: what you do next, you do to the marked rows.
    compare_marked   C         compare   Compare two marked rows, or the marked one with the selected one; on the screen
        of results keep the marked (else all found) ones, then compare others with them.
    zoom             Z         zoom      Show the current panel on the whole screen, or all panels again.
    next_theme       t         theme     Switch to the next theme.
    show_config      ,         config    Change the settings in the config file.
    copy_shown       Y         copy      Copy the current panel as Markdown, CSV, JSON or SVG.
    save_picture     ctrl+g    ~picture  Save a picture of the screen as SVG.
    redraw           ctrl+l    ~redraw   Redraw a screen that other output has overwritten.
    suspend_process  ctrl+z    ~suspend  Suspend dlbricks; `fg` resumes it.
    quit             q ctrl+c  !quit     Quit; a run in progress continues.
""")

LIST = Scope("""list: In every list
    down       j down           down       Go one line down.
    up         k up             up         Go one line up.
    page_down  ctrl+d pagedown  page down  Go one page down.
    page_up    ctrl+u pageup    page up    Go one page up.
    first      g home           first      Go to the first line.
    last       G end            last       Go to the last line.
""")

DIALOG = Scope("""dialog: In this box
    close                    escape q  *close  Close the box without doing anything.
    show_help=app.show_help  f1 ?      help    List the keys that work here.
    leave=app.quit           ctrl+c    quit    Quit dlbricks.
""")

SEARCH = Scope(
    """find: While you search
    keep   enter down  *keep        Keep the search and go to its results.
    clear  escape      !end search  End the search and show all rows again.
""",
    typing=True,
)

BOX = _box("""box: In a box with a list
    search  /  *search  Search in this list.
""")

FORM = _typing("""form: In this form
    submit          enter         *use      Use these shapes and values.
    next_field      tab down      *next     Go to the next field.
    reset           ctrl+r        *reset    Forget the shapes and values given for this model.
    previous_field  shift+tab up  previous  Go to the previous field.
""")

PATH = _typing("""path: While you type a path
    take               enter        *use       Use the path or the selected file; open a selected folder.
    complete           tab          *complete  Complete the path as far as it is unique.
    next=walk(1)       down ctrl+n  *next      Select the next of the names below.
    previous=walk(-1)  up ctrl+p    previous   Select the previous name; before the first, the path.
""")

NUMBERS = _typing("""numbers: While you write a value
    submit  enter  *use  Use what is written.
""")

ERROR = _box("""error: With this error
    copy  y  *copy  Copy the text to the clipboard of your terminal.
""")

WELCOME = _box("""welcome: At the first start
    begin   enter  *begin  Open the sample and measure it.
    search  /      search  Close the box, and search for a model.
""")

DEMONSTRATION = _box("""demonstration: At the start of a demonstration
    begin   enter  *begin  Open a model, and look around.
    search  /      search  Close the box, and search for a model.
""")

PALETTE = _typing("""palette: In the command palette
    take               enter        *do it    Run the selected command.
    next=step(1)       down ctrl+n  *next     Select the next command.
    previous=step(-1)  up ctrl+p    previous  Select the previous command.
""")

HIDDEN_MARKS = _box("""hidden_marks: When marked rows are hidden
    in_view     enter  *those in view  Use only the marked rows in view.
    everything  a      *all marked     Use the hidden marked rows too.
""")

CONFIG = _box("""config: In the settings of the config file
    next=step(1)       l right enter  *next value      Change to the next value.
    previous=step(-1)  h left         *previous value  Change to the previous value.
    reset              d              *delete          Remove the setting from the file: its default applies.
""")

COPYING = _box("""copying: Before a panel is copied
    copy  enter Y  *copy  Copy the panel in the selected form.
""")

WORKBENCH = _screen("""workbench: On the workbench
    start_run                         m       !measure          Measure the bricks of the marked or the open models.
    show_analysis                     A       !analysis         Show how fast the open model could be, and what is worth
        changing.
    open_path                         o       *file             Open a model file, or add a folder of models.
    show_runs                         J       jobs              Show all runs and other jobs, to watch or resume one.
    show_queue                        Q       queue             Show what measures on this host, and what waits.
    finer=change('granularity', -1)   -       finer             Cut into sequences of one layer less.
    coarser=change('granularity', 1)  +       granularity       Cut into sequences of one layer more.
    other_level=change('level', 1)    f       fused/written     Switch between fused and written layers.
    show_scores                       P       predictions       Show how good predictions have been.
    show_variants                     V       *variants         Show which runtime, number of threads and batch size are
        best, and measure others.
    show_scenario                     L       *load             Show how much load the open model can serve.
    show_trace                        T       *trace            Show where the time of the open model goes, in a
        timeline.
    show_language                     M       *language models  Show how many tokens per second language models make on
        this host, and whether they fit.
    show_fleet                        F       fleet             Show many hosts that measure for you, and which is best.
    export_suite                      e       export            Write the bricks of the marked or the open models into a
        suite, for a machine that must not have the models.
    show_settings                     =       settings          Go to the settings of the estimate.
    expert                            .       more              Show what the estimate rests on and its settings too, or
        only the answer.
    go_to_models                      1       models            Go to the models.
    go_to_tree                        2       tree              Go to the decomposition.
    go_to_details                     3       details           Go to the details.
    go_to_estimate                    4       estimate          Go to the estimate.
    show_run                          w       run               Watch the run.
    close_run_bar                     escape  close             Hide the bar of a run that has ended.
    show_results                      R       results           Show all measurements.
    show_corpus                       U       corpus            Show what repeats within and across models.
    show_systems                      S       systems           Show the systems and what disturbs this one.
    wider=widen(1)                    >       wider             Make the current panel wider, and remember it.
    narrower=widen(-1)                <       narrower          Make the current panel narrower, and remember it.
    taller=heighten(1)                ]       taller            Make the details or the estimate taller, and remember
        it.
    shorter=heighten(-1)              [       shorter           Make the details or the estimate shorter, and remember
        it.
    PANEL_STEPS
""")

MODELS = WORKBENCH.panel("""models: In the list of models
    open                            enter     *open     Open the selected model; fold or unfold the selected group.
    unfold                          l right   unfold    Unfold the selected group; open the selected model.
    fold                            h left    fold      Fold the group around the selected row.
    sort                            s         sort      Sort by name, time, layers, age, or as in the library.
    choose_columns                  c         columns   Select the columns to show.
    mark_all                        a         mark all  Mark all models in view, or none of them.
    remove=screen.remove_model      d delete  delete    Remove an added model from the list; its file stays.
    give_shapes=screen.give_shapes  i         shapes    Set the shapes of the model's inputs.
""")

MODEL_COLUMNS = _box("""model_columns: In the columns of the list of models
    show_or_hide  space  *show/hide  Show the column, or hide it.
    use           enter  *use        Show these columns, and remember them.
""")

TREE = WORKBENCH.panel("""tree: In the decomposition
    expand                                     l right  *open           Expand the selected part, or go into it.
    collapse                                   h left   close           Collapse the selected part, or go to its parent.
    open_or_close                              enter    open/close      Expand or collapse the selected part.
    expand_below                               *        *expand         Expand everything below the selected part.
    collapse_all                               z        collapse        Collapse everything but the model.
    next_equal=step_to_equal(1)                n        *same           Go to the next equal brick or block.
    previous_equal=step_to_equal(-1)           N        same before     Go to the previous equal brick or block.
    next_critical=step_to('critical', 1)       )        *path           Go to the next sequence on the critical path.
    previous_critical=step_to('critical', -1)  (        path before     Go to the previous sequence on the critical
        path.
    next_missing=step_to('missing', 1)         }        *missing        Go to the next sequence that was not measured.
    previous_missing=step_to('missing', -1)    {        missing before  Go to the previous sequence that was not
        measured.
    sort                                       s        sort            Sort the sequences by time, or show the tree
        again.
    copy                                       y        copy key        Copy the brick's key, for `dlbricks results
        show`.
""")

DETAILS = WORKBENCH.panel("""details: In the details
    copy  y  *copy key  Copy the brick's key, for `dlbricks results show`.
""")

ESTIMATE = WORKBENCH.panel("""estimate: In the estimate
    next               l right enter  next value      Change to the next value, or go to the selected layer.
    previous=step(-1)  h left         previous value  Change to the previous value.
""")

RUN = _screen("""run: On the run screen
    pause                           p       *pause/resume  Pause the run so that others can measure, or resume one that
        was paused or interrupted.
    cancel                          x       *cancel        Cancel the run, or stop its replay; measurements are kept.
    slower=change_replay('slower')  -       *slower        Replay the run half as fast.
    faster=change_replay('faster')  +       *faster        Replay the run twice as fast.
    show_runs                       J       *jobs          Show all jobs, to watch another one.
    go_to_bricks                    1       bricks         Go to the bricks.
    go_to_estimates                 2       estimates      Go to the estimates.
    go_to_notes                     3       notes          Go to the notes.
    PANEL_STEPS
    leave                           escape  *back          Go back to the workbench; the run continues.
""")

RUNS = _searched_box("""runs: In the list of jobs
    show                               enter l right  *watch         Show the selected job.
    replay                             w              *replay        Show an ended run again from its events.
    resume                             p              *pause/resume  Pause a job that goes on, or resume one that has
        not ended whole.
    mark=app.mark                      space          mark           Mark a run, to compare it with another one.
    compare_marked=app.compare_marked  C              *compare       Compare the two marked runs.
""")

JOB = _box("""job: In the box of a job
    pause   p  *pause/resume  Pause the job, so that others can measure, or let it go on.
    cancel  x  *cancel        End the job; what it has stored is kept.
""")

START_RUN = _box("""start_run: Before a run starts
    begin              enter    *start     Start the run; it continues even if you quit.
    next=step(1)       l right  *next      Change to the next value.
    previous=step(-1)  h left   *previous  Change to the previous value.
    expert             .        *expert    Show the expert settings too, or hide them.
    write              =        *write     Write threads or batch sizes, such as 1,2,4.
""")

CANCEL_RUN = _box("""cancel_run: Before a run is cancelled
    confirm  y enter  *cancel the run  Cancel it; its measurements are kept.
""")

QUEUE = _box("""queue: In the line of work on this host
    follow  enter l right  *follow  Show how far the selected work is.
    cancel  x              *cancel  End the selected work, whoever has started it.
""")

CANCEL_WORK = _box("""cancel_work: Before work is cancelled
    confirm  y enter  *cancel it  End it; stored results are kept.
""")

RESULTS = _screen("""results: On the screen of results
    export         e       *export  Export the marked (else all found) results to a file.
    import_file    i       *import  Import results from a file.
    delete         d       *delete  Delete the marked results, or the selected one.
    undo_delete    u       *undo    Restore the results that were deleted last.
    go_to_results  1       results  Go to the results.
    go_to_result   2       result   Go to the result.
    go_to_history  3       history  Go to the history.
    PANEL_STEPS
    leave          escape  *back    Go back to the workbench.
""")

RESULT_TABLE = RESULTS.panel("""result_table: In the table of results
    open=screen.read_selected    enter    *read            Read about the selected result.
    sort                         s        *sort            Sort by the underlined column, or reverse the order.
    column_right=move_column(1)  l right  *next column     Go to the next column.
    column_left=move_column(-1)  h left   previous column  Go to the previous column.
    choose_columns               c        *columns         Select the columns to show.
    mark_all                     a        mark all         Mark all results that were found, or none of them.
    copy                         y        copy key         Copy the brick's key, for `dlbricks results show`.
    only_this                    b        this brick       Show only results of this brick, or of this model.
""")

RESULT = RESULTS.panel("""result: In the panel of one result
    copy  y  *copy key  Copy the brick's key, for `dlbricks results show`.
""")

HISTORY = RESULTS.panel("""history: In the history
    open=screen.read_older  enter  *read    Read about the selected measurement.
    copy                    y      copy id  Copy the id of the measurement, for `dlbricks results show`.
""")

COLUMNS = _searched_box("""columns: In the list of columns
    show_or_hide         space      *show/hide   Show the column, or hide it.
    move_right=shift(1)  J l right  *move right  Move the column to the right.
    move_left=shift(-1)  K h left   move left    Move the column to the left.
    use                  enter      *use         Show these columns.
""")

DELETE_RESULTS = _box("""delete_results: Before results are deleted
    confirm  y  *delete  Delete them.
""")

CORPUS = _screen("""corpus: On the corpus screen
    read_all                          r       *read all          Read the models that were never read before.
    other_level=change('level', 1)    f       *fused/written     Switch between fused and written layers.
    coarser=change('granularity', 1)  + =     *longer sequences  Cut into sequences of one layer more.
    finer=change('granularity', -1)   -       shorter sequences  Cut into sequences of one layer less.
    go_to_uniqueness                  1       uniqueness         Go to the models.
    go_to_kinds                       2       kinds              Go to the kinds of layers that repeat.
    go_to_likeness                    3       likeness           Go to the grid of likeness.
    go_to_granularities               4       accuracy           Go to speed-up and accuracy by granularity.
    PANEL_STEPS
    leave                             escape  *back              Go back to the workbench.
""")

UNIQUENESS = CORPUS.panel("""uniqueness: In the models of the corpus
    sort                                s      *sort      Sort by name, by layers, or by the unique share.
    show_likeness=screen.show_likeness  enter  *likeness  Go to the model in the grid of likeness.
""")

LIKENESS = CORPUS.panel("""likeness: In the grid of likeness
    right=step(1)  l right  *next model      Go one model to the right.
    left=step(-1)  h left   *previous model  Go one model to the left.
    most_alike     n        *most alike      Go to the model that is most like the row.
    exchange       i        exchange         Exchange row and column.
""")

SYSTEMS = _screen("""systems: On the systems screen
    look_again      r       *refresh   Examine this host and read the store again.
    go_to_systems   1       systems    Go to the systems.
    go_to_system    2       system     Go to the facts about the system.
    go_to_machines  3       *machines  Go to the machines for the model.
    go_to_doctor    4       doctor     Go to what disturbs measurements on this host.
    PANEL_STEPS
    leave           escape  *back      Go back to the workbench.
""")

SYSTEM_LIST = SYSTEMS.panel("""system_list: In the list of systems
    take=screen.take_system  enter  *use  Estimate from the results of this system.
""")

MACHINES = SYSTEMS.panel("""machines: In the machines for the model
    take=screen.take_machine  enter  *use   Estimate from the results of this system.
    sort                      s      *sort  Sort by latency, or by the cost of a million inferences.
""")

DOCTOR = SYSTEMS.panel("""doctor: In the findings of the doctor
    copy  y  *copy cure  Copy the selected cure.
""")

ANALYSIS = _screen("""analysis: On the analysis screen
    prove           v       *prove     Carry out the marked what-ifs, or the selected one, and measure their gain.
    cancel          x       cancel     Cancel the proof in progress; those before it are kept.
    measure         m       *measure   Measure what the what-ifs and the roofline lack.
    show_roofline   b       *roofline  Draw the layers under the peaks of their system.
    show_kernels    K       *kernels   Show which kernels compute the layers, and why others were refused; the runtime
        loads the model for it.
    look_again      r       refresh    Analyse the model again, from the results stored by now.
    go_to_bounds    1       bounds     Go to the bounds and the gap.
    go_to_what_ifs  2       *what-ifs  Go to the what-ifs.
    go_to_change    3       change     Go to the change that the selected what-if makes.
    go_to_layers    4       *layers    Go to the layers and where they are fastest.
    PANEL_STEPS
    leave           escape  *back      Go back to the workbench; a proof in progress goes on.
""")

BOUNDS = ANALYSIS.panel("""bounds: In the bounds
    copy  y  copy command  Copy the selected command, which measures what is missing.
""")

WHAT_IFS = ANALYSIS.panel("""what_ifs: In the what-ifs
    show=screen.go_to('analysis.go_to_change')  enter l right  *the change  Go to the selected change.
    mark_all  a  mark all  Mark all what-ifs that the search finds, or none of them.
    copy      y  *copy     Copy the command or setting of the selected what-if.
    sort      s  *sort     Sort by kind, or by gain.
""")

CHANGE = ANALYSIS.panel("""change: In the change
    copy  y  *copy  Copy the command or setting of the change.
""")

LAYERS = ANALYSIS.panel("""layers: In the layers and where they are fastest
    sort  s  *sort  Sort by time, or by the time that the best saves.
""")

MEASURE = _box("""measure: Before what-ifs are measured
    confirm  enter  *measure  Measure the executions, in runs of their own.
""")

VARIANTS = _screen("""variants: On the screen of variants
    measure                     m enter  *measure        Measure the marked cells, or else the selected one.
    measure_row                 w        *row            Measure the row: all batch sizes.
    measure_column              c        *column         Measure the column: all runtimes and threads.
    mark_all                    a        mark all        Mark all cells, or none of them.
    other_unit                  u        *ms/per second  Switch between ms and per second.
    left=step_batch(-1)         h left   left            Go to the next smaller batch size.
    right=step_batch(1)         l right  right           Go to the next larger batch size.
    raise_bound=step_bound(1)   + =      *higher bound   Raise the bound of the latency.
    lower_bound=step_bound(-1)  -        *lower bound    Lower the bound of the latency.
    drop_bound                  n        no bound        Compare without a bound.
    look_again                  r        refresh         Read the results stored by now.
    leave                       escape   *back           Go back to the workbench.
""")

SCENARIO = _screen("""scenario: On the scenario screen
    measure          m       *measure       Measure the scenario with MLPerf LoadGen.
    pause            p       *pause/resume  Pause the measurement so that others can measure, or resume it with the test
        in progress.
    cancel           x       *cancel        Cancel the measurement; its tests that have ended are stored.
    look_again       r       refresh        Predict again, from the results stored by now.
    go_to_load       1       load           Go to the latency at each load.
    go_to_settings   2       *settings      Go to the settings of the scenario.
    go_to_latencies  3       *latencies     Go to the latencies of a test.
    go_to_tests      4       *load tests    Go to the stored load tests.
    PANEL_STEPS
    leave            escape  *back          Go back to the workbench; a measurement goes on.
""")

LOAD_SETTINGS = SCENARIO.panel("""load_settings: In the settings of the scenario
    next=step(1)       l right  *next value     Change to the next value.
    previous=step(-1)  h left   previous value  Change to the previous value.
    write              = enter  *write          Write a value of your own.
""")

LATENCIES = SCENARIO.panel("""latencies: In the latencies
    copy  y  *copy folder  Copy the path of LoadGen's logs.
""")

LOAD_TESTS = SCENARIO.panel("""load_tests: In the load tests
    take=screen.take_test  enter l right  *predict it  Take the settings of the selected load test, and predict its
        scenario.
""")

CANCEL_LOAD = _box("""cancel_load: Before a measurement is cancelled
    confirm  y enter  *cancel it  Cancel the measurement; its tests that have ended are stored.
""")

TRACE = _screen("""trace: On the trace screen
    measure         m       *measure  Trace the open model at rising levels of detail.
    cancel          x       *cancel   Cancel the trace in progress; stored traces are kept.
    write           e       *export   Write the trace to a file for Perfetto or chrome://tracing.
    look_again      r       refresh   List the stored traces of the model again.
    go_to_timeline  1       timeline  Go to the timeline.
    go_to_span      2       *span     Go to the details of the selected span.
    go_to_traces    3       *traces   Go to the stored traces of the model.
    PANEL_STEPS
    leave           escape  *back     Go back to the workbench; a trace in progress goes on.
""")

TIMELINE = TRACE.panel("""timeline: In the timeline
    next=step(1)                           l right  *next             Select the next span of a track, or open a level.
    previous=step(-1)                      h left   previous          Select the previous span of a track, or close a
        level.
    open_or_close                          enter    *open/close       Open or close the level of the row.
    zoom_in=zoom(1)                        + =      *zoom in          Show half of the times, around the selection.
    zoom_out=zoom(-1)                      -        *zoom out         Show twice as many times.
    pan_right=pan(1)                       >        later             Show later times.
    pan_left=pan(-1)                       <        earlier           Show earlier times.
    next_inference=move_inference(1)       n        *next inference   Go to the next inference.
    previous_inference=move_inference(-1)  N        inference before  Go to the previous inference.
    slowest                                w        *slowest          Select the longest span of the track in this
        inference.
    fit                                    f        *fit              Show one inference from its start to its end.
    fit_everything                         F        fit all           Show all inferences.
    fit_span                               z        fit span          Show the selected span as wide as the row.
    show_in_tree=screen.show_in_tree       b        *decomposition    Go back to the workbench, with the layer of the
        span selected in the decomposition.
    copy                                   y        copy key          Copy the key of the layer's brick, for `dlbricks
        results show`.
""")

SPAN = TRACE.panel("""span: In the details of a span
    copy  y  copy key  Copy the key of the layer's brick, for `dlbricks results show`.
""")

TRACES = TRACE.panel("""traces: In the stored traces
    open=screen.open_trace  enter l right  *open    Show the selected trace.
    copy                    y              copy id  Copy the id of the selected trace.
""")

START_TRACE = _box("""start_trace: Before a model is traced
    begin              enter    *trace           Trace the model with these settings.
    next=step(1)       l right  *next value      Change to the next value.
    previous=step(-1)  h left   *previous value  Change to the previous value.
    write              =        *write           Write a number of your own.
""")

CANCEL_TRACE = _box("""cancel_trace: Before a trace is cancelled
    confirm  y enter  *cancel it  Cancel the trace; stored traces are kept.
""")

LANGUAGE = _screen("""language: On the screen of language models
    measure         m       *measure   Measure the selected model on this host.
    compare         c       *compare   Measure the model in all runtimes and precisions, to compare them.
    prove           v       *prove     Measure the selected what-if.
    cancel          x       *cancel    Cancel the measurement; what it has stored is kept.
    open_path       o       *open      Add a model: its config.json, folder, GGUF file or name.
    show_load       u       *users     Show how many users the selected model serves.
    show_systems    S       systems    Compare the systems of the store for the selected model.
    look_again      r       refresh    Read the results stored by now.
    go_to_models    1       models     Go to the language models.
    go_to_answer    2       *answer    Go to the answer of the selected model.
    go_to_what_ifs  3       *what-ifs  Go to what changes of the execution would gain.
    go_to_curves    4       *curves    Go to the speed by context and by prompt.
    go_to_settings  5       *settings  Go to the prompt and the execution.
    PANEL_STEPS
    leave           escape  *back      Go back to the workbench; a measurement goes on.
""")

LANGUAGE_MODELS = LANGUAGE.panel("""language_models: In the list of language models
    open=screen.go_to('language.go_to_answer')  enter l right  answer  Go to the answer of the model.
    sort          s  *sort         Sort by speed, memory, size or name.
    only_fitting  f  *that fit     Show only models that fit, or all.
    at_least      =  *at least     Show only models of so many tokens/s.
    copy          y  copy command  Copy the command that measures the model.
""")

LANGUAGE_WHAT_IFS = LANGUAGE.panel("""language_what_ifs: In the what-ifs of a language model
    open=screen.tell_how  enter l right  *how   Tell how the change is made, and what it brings to a whole answer.
    copy                  y              *copy  Copy the command or setting of the selected what-if.
    sort                  s              *sort  Sort by the gain in all, for the prompt or for each token.
""")

COMPARE_LANGUAGE = _box("""compare_language: Before the executions of a language model are measured
    confirm  enter  *measure  Measure them, one after another.
""")

LANGUAGE_SETTINGS = LANGUAGE.panel("""language_settings: In the settings of language models
    next=step(1)       l right  *next value     Change to the next one.
    previous=step(-1)  h left   previous value  Change to the previous value.
    write              = enter  *write          Write a number of your own.
""")

FLEET = _screen("""fleet: On the fleet screen
    start          m       *measure       Measure the marked or open models on the hosts, in a new fleet run.
    pause          p       *pause/resume  Pause all hosts so that others can measure, or resume a fleet run.
    cancel         x       *cancel        Cancel the fleet run; what was measured is kept.
    add            o       *add hosts     Add the hosts of another hosts file.
    show_fleets    J       *jobs          Show all jobs, to watch another fleet run.
    go_to_hosts    1       hosts          Go to the hosts.
    go_to_models   2       models         Go to the models.
    go_to_ranking  3       ranking        Go to the hosts of the selected model.
    PANEL_STEPS
    leave          escape  *back          Go back to the workbench; the fleet run continues.
""")

FLEET_HOSTS = FLEET.panel("""fleet_hosts: In the hosts of a fleet
    pause=screen.tell_host('pause')    P  *pause host   Pause the selected host, or resume it.
    cancel=screen.tell_host('cancel')  X  *cancel host  End the work of the selected host.
    copy                               y  copy message  Copy what the selected host reports.
""")

FLEET_RANKING = FLEET.panel("""fleet_ranking: In the hosts of a model
    sort  s  *sort  Sort by latency or by cost.
""")

START_FLEET = _box("""start_fleet: Before a fleet run starts
    begin              enter    *start     Start it; it continues even if you quit.
    next=step(1)       l right  *next      Change to the next value.
    previous=step(-1)  h left   *previous  Change to the previous value.
""")

CANCEL_FLEET = _box("""cancel_fleet: Before a fleet run is cancelled
    confirm  y enter  *cancel it  Cancel the fleet run; what was measured is kept.
""")

MARKED = _screen("""marked: On the screen of a comparison
    exchange             i       *exchange    Exchange A and B.
    look_again           r       *refresh     Read the results stored by now.
    go_to_parts          1       differences  Go to the bricks or layers that differ most.
    go_to_circumstances  2       what else    Go to what else differs.
    PANEL_STEPS
    leave                escape  *back        Go back; marks stay.
""")

PAIRS = MARKED.panel("""pairs: In the list of differences
    sort  s  *sort  Sort by difference, by change, or by name.
""")

SCOPES: tuple[Scope, ...] = tuple([it for it in vars().values() if isinstance(it, Scope)])
_SURROUNDING = {outer for scope in SCOPES for outer in scope.outer}
_GENERAL = SCOPES[: SCOPES.index(WORKBENCH)]
_OF_SCREENS = SCOPES[len(_GENERAL) :]
# Panels and boxes before the screens around them.
_INNERMOST_FIRST = (*sorted(_OF_SCREENS, key=_SURROUNDING.__contains__), *reversed(_GENERAL))
ACTIONS: tuple[Action, ...] = tuple(action for scope in _INNERMOST_FIRST for action in scope.actions)
BY_ID = {action.id: action for action in ACTIONS}
# The scopes whose keys work at the same time, from the inside out, for each place where the focus can be. Within a
# chain a key has one meaning.
CHAINS = tuple((scope, *scope.outer) for scope in SCOPES if scope not in _SURROUNDING)
