"""Guards the key: whatever a server makes of it, no part of it is recorded, told or printed."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_server import Behaviour, Server, send
from commands import called
from equipoise_cli.harvest import Topic, harvest
from equipoise_studies.recorded_conversations import parse_record
from equipoise_studies.systems.endpoint import (
    Endpoint,
    EndpointError,
    Sampling,
    ask_patiently,
    connect,
)
from equipoise_studies.systems.keys import kept_out, tells

KEY = "sk-Proj/4bQz_9Lm+Xw2Rk7TfVh8Yc3Nd6Gj1Pa5Se0U"
PART = 12  # letters and digits of a key that may never be seen in a row

FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "as the header": lambda key: f"Authorization: Bearer {key}",
    "in capitals": str.upper,
    "URL-encoded": lambda key: quote(key, safe=""),
    "URL-encoded twice": lambda key: quote(quote(key, safe=""), safe=""),
    "every byte URL-encoded": lambda key: "".join(f"%{byte:02X}" for byte in key.encode()),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of the header": lambda key: base64.b64encode(f"Bearer {key}".encode()).decode(),
    "base64 of a pair": lambda key: base64.b64encode(f"u:{key}".encode()).decode(),
    "base64 for URLs": lambda key: base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
    "hexadecimal": lambda key: key.encode().hex(),
    "escaped as in JSON": lambda key: "".join(f"\\u{ord(letter):04x}" for letter in key),
    "escaped as in C": lambda key: "".join(f"\\x{ord(letter):02x}" for letter in key),
    "slashes escaped": lambda key: json.dumps(key).replace("/", "\\/"),
    "HTML": lambda key: "".join(f"&#{ord(letter)};" for letter in key),
    "HTML names": lambda key: html.escape(key.replace("-", "&")).replace("&amp;", "-"),
    "by lines": "\n".join,
    "by blanks": " ".join,
    "by hyphens": "-".join,
    "by what cannot be seen": "\u200b".join,
    "the first part": lambda key: f"Incorrect API key: {key[:24]}***",
    "the last part": lambda key: f"***{key[20:]} is not known",
    "a part of base64": lambda key: base64.b64encode(key.encode()).decode()[3:43],
    "twice": lambda key: key + key,
    "cut at the end of what is kept": lambda key: "x" * 170 + key,
    "far behind": lambda key: " " * 3000 + key,
}


def answer(
    text: str = "Tenet: https://www.imdb.com/1", finish: str = "stop", **more: object
) -> bytes:
    return json.dumps(
        {"choices": [{"message": {"content": text}, "finish_reason": finish}], **more}
    ).encode()


PLACES: dict[str, Callable[[str], Behaviour]] = {
    "the text": lambda echo: lambda h: send(h, answer(f"Your key is {echo}, isn't it?")),
    "the end": lambda echo: lambda h: send(h, answer(finish=echo)),
    "the model": lambda echo: lambda h: send(h, answer(model=echo)),
    "the fingerprint": lambda echo: lambda h: send(h, answer(system_fingerprint=echo)),
    "an error that may pass": lambda echo: lambda h: send(h, echo.encode(), 503),
    "an error that stays": lambda echo: (
        lambda h: send(h, json.dumps({"error": echo}).encode(), 401)
    ),
    "broken JSON": lambda echo: lambda h: send(h, answer(echo)[:-2]),
    "a key of the JSON": lambda echo: (
        lambda h: send(h, json.dumps({echo: echo, "choices": []}).encode())
    ),
    "counts": lambda echo: (
        lambda h: send(h, answer(usage={"prompt_tokens": echo, "completion_tokens": 9**9}))
    ),
    "headers": lambda echo: (
        lambda h: send(h, b"no", 503, X_Echo=quote(echo), Retry_After=quote(echo)[:60])
    ),
}


def seen(text: str) -> str:
    """A text with every escape undone, its letters and digits alone."""
    for _ in range(3):
        coded = r"(?:%|\\+x|\\+u00)([0-9A-Fa-f]{2})"
        text = re.sub(coded, lambda found: chr(int(found[1], 16)), html.unescape(text))
        text = re.sub(r"\\+(n|u200b)", "", text)
    return "".join(filter(str.isalnum, text)).lower()


def assert_without_key(text: str) -> None:
    plain = "".join(filter(str.isalnum, KEY)).lower()
    for place in range(len(plain) - PART + 1):
        assert plain[place : place + PART] not in seen(text)
    for run in re.findall(r"[A-Za-z0-9+/_-]{16,}", text):
        for shift in range(4):
            some = (
                run[shift : shift + (len(run) - shift) // 4 * 4].replace("-", "+").replace("_", "/")
            )
            found = base64.b64decode(some).decode("latin-1")
            assert not any(KEY[at : at + PART] in found for at in range(len(KEY) - PART + 1))
    for run in re.findall("[0-9a-f]{16,}", text):
        assert KEY[:PART] not in bytes.fromhex(run[: len(run) // 2 * 2]).decode("latin-1")


@pytest.mark.parametrize("place", PLACES)
def test_no_form_of_the_key_leaves_the_endpoint(
    place: str, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in an answer, which a harvest records, nor in an error, recorded and told."""
    monkeypatch.setenv("MY_KEY", KEY)
    server = serve(*(PLACES[place](form(KEY)) for form in FORMS.values()))
    endpoint, told = Endpoint(server.url, "m", key_variable="MY_KEY", tries=1), []
    with connect() as client:
        for _ in FORMS:
            try:
                told.append(repr(ask_patiently(client, endpoint, Sampling(), [], logprobs=True)))
            except EndpointError as error:
                told.append(str(error))
    assert server.authorisations == [f"Bearer {KEY}"] * len(FORMS)
    for text in told:
        assert_without_key(text)


def test_no_form_of_the_key_is_recorded_or_printed(
    tmp_path: Path, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server = serve(
        *(
            behaviour(form(KEY))
            for behaviour in PLACES.values()
            for form in list(FORMS.values())[5:8]
        )
    )
    topics, record, transcript = tmp_path / "topics.csv", tmp_path / "r.jsonl", tmp_path / "t.txt"
    topics.write_text(
        "topic,type,request,format,site\nT1,T,Please list.,title,\nT2,T,Please list more.,title,\n"
    )
    common = [
        "harvest",
        "--topics",
        str(topics),
        "--endpoint",
        server.url,
        "--model",
        "m",
        "--key-variable",
        "MY_KEY",
    ]
    common += ["-o", str(record), "--transcripts", str(transcript), "--tries", "1", "--trials", "9"]
    for _ in range(9):
        said = called(*common)
        assert_without_key(said.output + record.read_text())
    assert len(server.requests) >= 30
    for text in (
        transcript.read_text() if transcript.exists() else "",
        *map(str, tmp_path.iterdir()),
    ):
        assert_without_key(text)


def test_the_checker_of_this_test_sees_every_form() -> None:
    for form in FORMS.values():
        with pytest.raises(AssertionError):
            assert_without_key(f"before {form(KEY)} behind")


def test_the_rest_of_an_answer_is_kept_where_the_key_is_plain() -> None:
    assert kept_out(KEY, f"so {KEY} is it") == "so [key] is it"
    assert kept_out(KEY, f"so {KEY.upper()} is it") == "[withheld: it repeats the key]"
    assert kept_out("", "nothing to keep out") == "nothing to keep out"


@given(st.text())
def test_a_text_without_the_key_is_left_alone(text: str) -> None:
    assert kept_out(KEY, text) == text


@given(
    st.text(max_size=40),
    st.text(max_size=40),
    st.sampled_from(sorted(FORMS)),
    st.integers(20, 160),
    st.randoms(),
)
def test_every_key_is_told_in_every_form(
    before: str, behind: str, form: str, length: int, random: object
) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    key = "sk-" + "".join(random.choices(letters, k=length))  # type: ignore[attr-defined]
    shown = FORMS[form](key) if "part" not in form else FORMS[form](key * 2)
    assert tells(key, f"{before} {shown} {behind}")


def test_tokens_that_spell_the_key_are_not_kept(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    tokens = [{"token": letter, "logprob": -0.5} for letter in KEY]
    body = json.loads(answer("fine"))
    body["choices"][0]["logprobs"] = {"content": tokens}
    server = serve(lambda h: send(h, json.dumps(body).encode()), lambda h: send(h, answer("fine")))
    with connect() as client:
        endpoint = Endpoint(server.url, "m", key_variable="MY_KEY")
        found, _ = ask_patiently(client, endpoint, Sampling(), [], logprobs=True)
    assert (found.text, found.written) == ("fine", ())


def test_a_key_spread_over_the_fields_is_not_kept(
    tmp_path: Path, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    parts = {"finish": KEY[:11], "model": KEY[11:22], "system_fingerprint": KEY[22:33]}
    server = serve(lambda h: send(h, answer(**parts)))
    topic = Topic("T1", "T", "Please list films.", "title, URL")
    harvest(
        [topic], Endpoint(server.url, "m", key_variable="MY_KEY"), tmp_path / "r.jsonl", trials=1
    )
    (first, _) = parse_record(tmp_path / "r.jsonl")[1]
    assert {first[name] for name in ("finish", "answered_by", "fingerprint")} == {"[key]"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "must name an environment variable that holds the key"),
        (f"{KEY}\nX-More: 1", "blanks or characters that no header can carry"),
        (f"{KEY[:9]} {KEY[9:]}", "blanks or characters"),
        (KEY + "é", "blanks or characters"),
        ("sk-1234", "too few to keep it out of a record"),
    ],
)
def test_a_bad_key_is_refused_at_once(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(ValueError, match=said) as caught:
        Endpoint("http://127.0.0.1/v1", "m", key_variable="MY_KEY")
    if value:
        assert value not in str(caught.value)


@pytest.mark.parametrize(
    "variable", [KEY, "hf_AbCdEfGhIjKlMnOp", "", "A=B", "NO\x00", "NO_SUCH_VARIABLE"]
)
def test_a_name_that_is_no_variable_is_refused_and_not_repeated(variable: str) -> None:
    with pytest.raises(ValueError, match="must name an environment variable") as caught:
        Endpoint("http://127.0.0.1/v1", "m", key_variable=variable)
    assert not variable or variable not in str(caught.value)


@pytest.mark.parametrize("option", ["--note", "--system", "--model", "--endpoint", "--topics"])
def test_a_key_among_the_settings_is_refused(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    topics = tmp_path / "topics.csv"
    topics.write_text(
        f"topic,type,request,format,site\nT1,T,{KEY if option == '--topics' else 'Please'},title,\n"
    )
    given = {
        "--topics": str(topics),
        "--endpoint": "http://127.0.0.1:9/v1",
        "--model": "m",
        "--key-variable": "MY_KEY",
    }
    given |= {"-o": str(tmp_path / "r.jsonl")}
    if option != "--topics":
        given[option] = f"http://127.0.0.1:9/{KEY}" if option == "--endpoint" else f"a {KEY}"
    said = called("harvest", *(word for pair in given.items() for word in pair))
    assert (said.exit_code, "would be recorded" in said.output) == (2, True)
    assert_without_key(said.output)
    assert not (tmp_path / "r.jsonl").exists()
