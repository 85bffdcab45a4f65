"""Studies over REST: what is accepted, what is refused in which words, and who may see what."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework_api_key.models import APIKey

from advisor.models import Study
from catalog.selectors import current_revision
from profiling.generate import write
from profiling.models import Run, Trace, TraceFile
from profiling.sample_capture import sample_capture
from tests.paths import REPOSITORY
from tests.workers import answer

pytestmark = pytest.mark.django_db

STUDIES = "/api/v1/studies/"


@pytest.fixture
def other_key() -> dict[str, str]:
    return {"Authorization": f"Api-Key {APIKey.objects.create_key(name='others')[1]}"}


def workload(**changes: Any) -> dict[str, Any]:
    document = json.loads((REPOSITORY / "docs" / "examples" / "llama-7b-training.json").read_text())
    return {**document, **changes}


def post(client: Client, key: dict[str, str], document: Any) -> Any:
    return client.post(STUDIES, json.dumps(document), content_type="application/json", headers=key)


def upload(client: Client, key: dict[str, str], content: bytes, name: str = "trace.json", **fields: str) -> Any:
    return client.post(STUDIES, {"files": SimpleUploadedFile(name, content), **fields}, headers=key)


def assert_problem(response: Any, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    problem = response.json()
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["detail"].strip()
    assert "Traceback" not in problem["detail"]
    return problem


def nothing_is_stored() -> bool:
    return not any(model.objects.exists() for model in (Study, Run, Trace, TraceFile))


def capture(tmp_path: Path) -> bytes:
    write(sample_capture(world_size=1), tmp_path / "trace.json.gz")
    return (tmp_path / "trace.json.gz").read_bytes()


def answered(study_id: str) -> Study:
    """The study after a worker has taken its run, in this process."""
    study = Study.objects.get(pk=study_id)
    answer(study.run)
    study.refresh_from_db()
    return study


def test_a_described_job_is_ranked(client: Client, key: dict[str, str], shipped_catalog: None) -> None:
    response = post(client, key, {"workload": workload(), "objective": "time", "gpus": 8})

    study = response.json()
    assert response.status_code == 201
    assert response["Location"] == study["status_url"]
    assert study["state"] == "done"
    offers = study["result"]["offers"]
    assert [offer["rank"] for offer in offers] == list(range(1, len(offers) + 1))
    assert {offer["gpus"] for offer in offers} == {8}
    times = [offer["time_to_finish_s"] for offer in offers]
    assert times == sorted(times)
    assert study["catalog_revision"] == current_revision()


def test_only_the_asked_kinds_of_price_count(client: Client, key: dict[str, str], shipped_catalog: None) -> None:
    study = post(client, key, {"workload": workload(), "pricing_models": ["on_demand"]}).json()

    assert {offer["pricing_model"] for offer in study["result"]["offers"]} == {"on_demand"}


def test_a_capture_is_accepted_and_then_answered(
    client: Client, key: dict[str, str], shipped_catalog: None, tmp_path: Path
) -> None:
    response = upload(client, key, capture(tmp_path), batch_per_step="16")
    accepted = response.json()
    assert response.status_code == 202
    assert (accepted["state"], accepted["result"]) == ("queued", None)

    study = answered(accepted["id"])
    seen = client.get(accepted["status_url"], headers=key).json()

    assert seen["state"] == "done"
    assert seen["result"]["capture"]["format"] == "kineto"
    assert seen["result"]["bottleneck"]["evidence"][0]["sentence"]
    assert len(seen["model_sha256"]) == 64
    assert study.trace.files.get().file.name == ""


def test_the_same_question_gives_the_same_bytes(client: Client, key: dict[str, str], shipped_catalog: None) -> None:
    first, second = (post(client, key, {"workload": workload()}).json() for _ in range(2))

    assert first["input_sha256"] == second["input_sha256"]
    assert json.dumps(first["result"]) == json.dumps(second["result"])


@pytest.mark.parametrize(
    ("content", "name", "code"),
    [
        (b"", "empty.json", "empty_file"),
        (b"epoch 1 loss 3.2\n", "train.log", "text_file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "trace.json", "unknown_binary"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(100), "trace.7z", "unknown_binary"),
        (b"anything", "report.nsys-rep", "export_needed"),
    ],
)
def test_what_no_reader_reads_is_refused_at_once(
    client: Client, key: dict[str, str], content: bytes, name: str, code: str
) -> None:
    response = upload(client, key, content, name)

    problem = assert_problem(response, 422, code)
    assert problem["errors"][0]["pointer"] == "#/files"
    assert nothing_is_stored()


def test_a_broken_archive_fails_with_a_sentence(client: Client, key: dict[str, str], shipped_catalog: None) -> None:
    response = upload(client, key, b"PK\x03\x04" + bytes(100), "ranks.zip")

    assert response.status_code == 202
    assert answered(response.json()["id"]).run.error_code == "archive_damaged"
    assert not TraceFile.objects.exclude(file="").exists()


def test_a_capture_without_gpu_work_fails_with_a_sentence(
    client: Client, key: dict[str, str], shipped_catalog: None
) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    accepted = upload(client, key, json.dumps({"traceEvents": [event]}).encode()).json()

    answered(accepted["id"])
    seen = client.get(accepted["status_url"], headers=key).json()

    assert (seen["state"], seen["error"]["code"], seen["result"]) == ("failed", "no_gpu_work", None)
    assert not TraceFile.objects.exclude(file="").exists()


def test_an_upload_over_the_limit_is_refused(client: Client, key: dict[str, str], settings: Any) -> None:
    settings.UPLOAD_MAX_BYTES = 10

    assert_problem(upload(client, key, b'{"traceEvents": []}'), 413, "body_too_large")
    assert nothing_is_stored()


@pytest.mark.parametrize(
    ("document", "status", "pointer"),
    [
        ({}, 400, "#/workload"),
        ({"workload": 3}, 422, "#/workload"),
        ({"workload": None}, 400, "#/workload"),
        ({"workload": workload(batch_per_step=-1)}, 422, "#/workload/batch_per_step"),
        ({"workload": workload(batch_per_step="many")}, 422, "#/workload/batch_per_step"),
        ({"workload": workload(batchsize=8)}, 422, "#/workload/batchsize"),
        ({"workload": workload(), "gpus": 3}, 422, "#/gpus"),
        ({"workload": workload(), "samples": 0}, 422, "#/samples"),
        ({"workload": workload(), "samples": True}, 400, "#/samples"),
        ({"workload": workload(), "objective": "fast"}, 422, "#/objective"),
        ({"workload": workload(), "pirce": 1}, 400, "#/pirce"),
    ],
)
def test_a_wrong_value_is_pointed_at(
    client: Client, key: dict[str, str], document: dict[str, Any], status: int, pointer: str
) -> None:
    response = post(client, key, document)

    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    assert [error["pointer"] for error in response.json()["errors"]] == [pointer]
    assert nothing_is_stored()


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"[1, 2", "JSON"),
        (b"[]", "object"),
        (b'{"title": NaN}', "JSON"),
        (b'{"a": ' * 40 + b"1" + b"}" * 40, "nested"),
        (b"[" * 100_000, "nested"),
        (b'{"title": "\\u0000"}', "U+0000"),
        (b'{"title": "\\ud800"}', "JSON"),
    ],
    ids=["cut", "list", "nan", "deep", "brackets", "nul", "surrogate"],
)
def test_a_body_that_cannot_be_read_is_refused(client: Client, key: dict[str, str], body: bytes, detail: str) -> None:
    response = client.post(STUDIES, body, content_type="application/json", headers=key)

    assert detail in assert_problem(response, 400, "bad_request")["detail"]


def test_a_body_over_the_limit_is_refused(client: Client, key: dict[str, str], settings: Any) -> None:
    body = b'{"title": "' + b"x" * settings.DATA_UPLOAD_MAX_MEMORY_SIZE + b'"}'

    assert_problem(client.post(STUDIES, body, content_type="application/json", headers=key), 413, "body_too_large")


def test_other_media_types_are_refused(client: Client, key: dict[str, str]) -> None:
    assert_problem(client.post(STUDIES, "a=1", content_type="text/plain", headers=key), 415, "media_type")


@pytest.mark.parametrize("header", ["", "Api-Key", "Api-Key nonsense", "Bearer x", "Api-Key aaaaaaaa.bbbbbbbbbbbb"])
def test_without_a_valid_key_nothing_is_told(client: Client, header: str) -> None:
    response = client.get(STUDIES, headers={"Authorization": header} if header else {})

    assert_problem(response, 401, "unauthenticated")
    assert response["WWW-Authenticate"] == "Api-Key"


def test_a_revoked_key_is_refused(client: Client, key: dict[str, str]) -> None:
    APIKey.objects.update(revoked=True)

    assert_problem(client.get(STUDIES, headers=key), 401, "unauthenticated")


def test_other_keys_see_nothing(
    client: Client, key: dict[str, str], other_key: dict[str, str], shipped_catalog: None
) -> None:
    study = post(client, key, {"workload": workload()}).json()

    for method in (client.get, client.delete):
        assert_problem(method(study["status_url"], headers=other_key), 404, "not_found")
    assert client.get(STUDIES, headers=other_key).json()["results"] == []
    assert [line["id"] for line in client.get(STUDIES, headers=key).json()["results"]] == [study["id"]]


def test_deleting_forgets_everything(client: Client, key: dict[str, str], tmp_path: Path) -> None:
    accepted = upload(client, key, capture(tmp_path)).json()

    assert client.delete(accepted["status_url"], headers=key).status_code == 204
    assert nothing_is_stored()
    assert_problem(client.get(accepted["status_url"], headers=key), 404, "not_found")


@pytest.mark.parametrize("path", ["/api/v1/nothing/", "/api/v1/servers/aws/none/"])
def test_an_unknown_address_is_a_problem_document(client: Client, key: dict[str, str], path: str) -> None:
    assert_problem(client.get(path, headers=key), 404, "not_found")


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("cursor=cD1hYmM=", "#/cursor"),
        ("cursor=%21", "#/cursor"),
        ("page_size=abc", "#/page_size"),
        ("page_size=0", "#/page_size"),
        ("page_size=501", "#/page_size"),
        ("page_size=00000001999999", "#/page_size"),
        ("foo=1", "#/foo"),
    ],
)
@pytest.mark.parametrize("path", [STUDIES, "/api/v1/accelerators/", "/api/v1/offers/"])
def test_a_page_that_cannot_be_is_refused(
    client: Client, key: dict[str, str], path: str, query: str, pointer: str
) -> None:
    problem = assert_problem(client.get(f"{path}?{query}", headers=key), 400, "invalid")

    assert [error["pointer"] for error in problem["errors"]] == [pointer]


@pytest.mark.parametrize("order", ["price_per_hour", "observed_on", "gpu_count"])
def test_a_cursor_of_another_order_is_refused(
    client: Client, key: dict[str, str], shipped_catalog: None, order: str
) -> None:
    response = client.get(f"/api/v1/offers/?ordering={order}&cursor=cD1hYmM=", headers=key)

    assert_problem(response, 400, "invalid")


def test_control_characters_in_addresses_and_cookies_are_refused(client: Client, key: dict[str, str]) -> None:
    assert_problem(client.get("/api/v1/servers/aws/%00/", headers=key), 404, "not_found")
    assert client.get("/studies/", headers={"Cookie": "sessionid=a\x00b"}).status_code == 400


def test_an_announced_body_over_the_limit_is_refused_unread(client: Client, key: dict[str, str]) -> None:
    huge = {**key, "Content-Length": str(50 * 1024**3)}

    assert_problem(
        client.post(STUDIES, b"", content_type="multipart/form-data; boundary=x", headers=huge), 413, "body_too_large"
    )


def test_an_accelerator_that_the_catalog_lacks_is_refused(
    client: Client, key: dict[str, str], shipped_catalog: None, tmp_path: Path
) -> None:
    problem = assert_problem(upload(client, key, capture(tmp_path), accelerator="nope"), 422, "invalid")

    assert problem["errors"][0]["pointer"] == "#/accelerator"
    assert nothing_is_stored()


def test_titles_are_shown_without_what_cannot_be_seen(
    client: Client, key: dict[str, str], shipped_catalog: None
) -> None:
    study = post(client, key, {"workload": workload(), "title": "a\u202eb\u0007c"}).json()

    assert study["title"] == "abc"


@pytest.mark.parametrize("charset", ["klingon", "bz2_codec", "utf-16"])
def test_other_character_sets_are_refused(client: Client, key: dict[str, str], charset: str) -> None:
    response = client.generic("POST", STUDIES, b"{}", f"application/json; charset={charset}", headers=key)

    assert_problem(response, 415, "media_type")


def test_a_method_that_is_not_served_is_refused(client: Client, key: dict[str, str]) -> None:
    assert_problem(client.put(STUDIES, headers=key), 405, "method_not_allowed")


def test_a_strange_host_is_refused(client: Client, key: dict[str, str]) -> None:
    assert_problem(client.get(STUDIES, headers={**key, "Host": "evil.example"}), 400, "bad_request")


def test_a_body_of_unannounced_length_is_refused(client: Client, key: dict[str, str]) -> None:
    response = client.post(STUDIES, headers={**key, "Transfer-Encoding": "chunked"})

    assert_problem(response, 411, "length_required")


def test_errors_speak_the_language_that_is_asked_for(client: Client, key: dict[str, str]) -> None:
    chinese = {**key, "Accept-Language": "zh-hant"}

    empty = upload(client, chinese, b"")
    chunked = client.post(STUDIES, headers={**chinese, "Transfer-Encoding": "chunked"})

    assert not assert_problem(empty, 422, "empty_file")["detail"].isascii()
    assert not assert_problem(chunked, 411, "length_required")["detail"].isascii()
