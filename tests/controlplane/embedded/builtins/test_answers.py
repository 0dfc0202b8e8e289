"""The rules of every kind against the answers of a genuine kube-apiserver, which `tools.record_answers` recorded.

tests/conformance/test_builtins.py holds servers that run to the same answers.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tools.record_answers import Question, answers, normalized, questions

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.builtins.registry import built_in_resources

ANSWERS = answers()
QUESTIONS = list(questions())


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.title)
def test_the_answer_is_kube_apiservers(
    question: Question,
    create: Callable[[JSONObject], JSONObject],
    update: Callable[[JSONObject, JSONObject], JSONObject],
) -> None:
    try:
        answer = create(question.document)
        if question.task == "update":
            answer = update(answer, question.changed(answer))
    except StatusError as error:
        answer = error.body()

    assert normalized(answer) == ANSWERS[question.title]


def test_every_question_has_an_answer() -> None:
    assert [question.title for question in QUESTIONS] == list(ANSWERS)


def test_every_kind_that_can_be_created_is_compared() -> None:
    recorded = {f"{question.document['apiVersion']} {question.document['kind']}" for question in QUESTIONS}
    elsewhere = ("authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io", "apiextensions.k8s.io")

    served = {
        f"{resource.gvk.api_version} {resource.gvk.kind}"
        for resource in built_in_resources()
        if resource.gvk.group not in elsewhere and {"create", "delete"} <= resource.verbs
    }
    assert recorded == served
