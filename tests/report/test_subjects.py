from dlbricks_tui.models.library import Library
from dlbricks_tui.report.subjects import LONGEST_LABEL, Subject, subject_of
from dlbricks_tui.settings import SAMPLE_MODELS


def test_the_fifty_are_told_apart_by_labels_that_fit() -> None:
    subjects = [subject_of(source) for source in Library(SAMPLE_MODELS, SAMPLE_MODELS).find("table1")]
    labels = [subject.label for subject in subjects]
    assert len(set(labels)) == 50
    assert max(map(len, labels)) <= LONGEST_LABEL
    assert labels[8] == "9 Inception V3"
    assert [subject.mark for subject in subjects] == [str(number) for number in range(1, 51)]


def test_a_model_of_ones_own_is_called_by_its_name() -> None:
    assert Subject("resnet18_v1").label == "resnet18_v1"
    assert Subject("x" * 80).label == "x" * (LONGEST_LABEL - 1) + "…"
