"""Asking a server that runs, whichever it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec
from tools.record_answers import Document, Question, in_namespace, normalized

from kubewright.api.markers import JSONValue
from kubewright.client.errors import APIError
from kubewright.client.session import Session

_ATTEMPTS = 20


class Asker:
    """Puts questions to one server, in one namespace that exists. Leaves nothing behind."""

    def __init__(self, session: Session, namespace: str) -> None:
        self._session = session
        self._namespace = namespace
        self._plurals: dict[str, Mapping[str, Document]] = {}

    async def ask(self, question: Question) -> JSONValue:
        """The server's answer, normalised."""
        document = in_namespace(question.document, self._namespace)
        collection = await self._collection(document)
        if question.task == "create":
            return normalized(await self._send("POST", f"{collection}?dryRun=All", document), self._namespace)
        return normalized(await self._update(question, document, collection), self._namespace)

    async def _update(self, question: Question, document: Document, collection: str) -> Document:
        target = f"{collection}/{cast(Document, document['metadata'])['name']}"
        answer: Document = {}
        for _ in range(_ATTEMPTS):
            stored = await self._send("POST", collection, document)
            try:
                answer = await self._send("PUT", f"{target}?dryRun=All", question.changed(stored))
            finally:
                await self._remove(target)
            # A controller that runs beside the server may have been faster.
            if answer.get("code") != 409:
                break
        return answer

    async def _remove(self, target: str) -> None:
        for _ in range(_ATTEMPTS):
            await self._send("DELETE", target, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
            left = await self._send("GET", target)
            if left.get("kind") == "Status":
                return
            if left.get("kind") == "Namespace":
                left["spec"] = {"finalizers": []}
                await self._send("PUT", f"{target}/finalize", left)
            elif cast(Document, left["metadata"]).get("finalizers"):
                cast(Document, left["metadata"])["finalizers"] = []
                await self._send("PUT", target, left)

    async def _collection(self, document: Document) -> str:
        api_version, kind = str(document["apiVersion"]), str(document["kind"])
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if api_version not in self._plurals:
            listed = cast(list[Document], (await self._send("GET", root))["resources"])
            self._plurals[api_version] = {str(r["kind"]): r for r in listed if "/" not in str(r["name"])}
        resource = self._plurals[api_version][kind]
        scope = f"/namespaces/{self._namespace}" if resource["namespaced"] else ""
        return f"{root}{scope}/{resource['name']}"

    async def _send(self, method: str, target: str, body: Document | None = None) -> Document:
        headers = [("Content-Type", "application/json"), ("Accept", "application/json")]
        content = None if body is None else msgspec.json.encode(body)
        try:
            answer = await self._session.request(
                method, target, request=f"{method} {target}", headers=headers, body=content
            )
        except APIError as error:
            status = msgspec.to_builtins(error.status)
            return {**cast(Document, status), "kind": "Status"}
        return cast(Document, msgspec.json.decode(answer.body))
