"""What a bug report must not tell a stranger. The secrets are made up."""

from __future__ import annotations

import getpass
import os
import socket
import stat
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devicecore.doctor import write_bundle
from devicecore.doctor.redaction import redacted

SECRETS = {
    "github": "ghp_" + "a1B2" * 9,
    "github fine": "github_pat_" + "11ABCDEFG0" * 4,
    "gitlab": "glpat-" + "x" * 20,
    "hugging face": "hf_" + "QwErTy" * 6,
    "openai": "sk-proj-" + "abc123" * 5,
    "aws": "AKIA" + "ABCDEFGH12345678",
    "google": "AIza" + "SyA-" * 9,
    "slack": "xoxb-" + "123456789012-abcdef",
    "pypi": "pypi-" + "AgEIcHlwaS5vcmc" * 3,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("around", ["{}", "error: {} refused", '"{}"', "a={}&b=1", "/x/{}/y"])
def test_tokens(secret: str, around: str) -> None:
    assert secret not in redacted(around.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter22secret",
        "PASSWORD: hunter22secret",
        "--api-key=hunter22secret",
        '{"api_key": "hunter22secret"}',
        "'client_secret': 'hunter22secret with spaces hunter22secret'",
        "MY_SERVICE_TOKEN=hunter22secret",
        "Authorization: Bearer hunter22secret",
        "authorization: basic hunter22secret",
        "https://me:hunter22secret@example.org/simple",
        "https://hunter22secret@example.org/simple",
        "postgresql+psycopg://me:hunter22secret@10.0.0.1:5432/db",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter22secret\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter22secret",
        "hunter22secret@example.org",
    ],
)
def test_secrets_by_their_surroundings(text: str) -> None:
    assert "hunter22secret" not in redacted(f"before {text} after")
    assert redacted(f"before {text} after").startswith("before ")


@pytest.mark.parametrize(
    "text",
    [
        "/home/alicia/models/x.onnx",
        "/Users/alicia/models/x.onnx",
        r"C:\Users\alicia\models\x.onnx",
        r"'C:\\Users\\alicia\\models'",
        "C:/Users/alicia/models",
        "file:///home/alicia",
        "/home/alicia: no such folder",
    ],
)
def test_the_homes_of_others(text: str) -> None:
    assert "alicia" not in redacted(text)


def test_the_values_of_variables_that_are_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(
        ("ACME_TOKEN", "DB_PASS", "MY_SECRET_THING", "OPENAI_KEY", "AUTH_HEADER", "SENTRY_DSN")
    ):
        monkeypatch.setenv(name, f"no pattern {number} here")
        assert f"no pattern {number}" not in redacted(f"it said 'no pattern {number} here'!")


def test_this_user_this_host_and_this_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "alicia")
    monkeypatch.setattr(socket, "gethostname", lambda: "tower7.example.org")
    monkeypatch.setenv("HOME", str(tmp_path / "homes" / "al"))
    work = tmp_path / "project"
    work.mkdir()
    monkeypatch.chdir(work)
    text = (
        f"{tmp_path}/homes/al/x {work}/y {sys.prefix}/lib alicia ALICIA alicia's /data/alicia/z "
        "alicia_models tower7.example.org tower7 malicias"
    )
    assert redacted(text) == (
        "~/x <folder>/y <environment>/lib <user> <user> <user>'s /data/<user>/z "
        "<user>_models <host> <host> malicias"
    )


def test_identities_of_hardware_and_addresses() -> None:
    text = "GPU-1b4e28ba-2fa1-11d2-883f-0016d3cca427 at http://10.1.2.3/x and 10.1.2.3:80"
    assert redacted(text) == "GPU-<id> at http://<address>/x and <address>:80"


def test_what_a_report_needs_stays() -> None:
    text = (
        "libcublasLt.so.13 of onnxruntime-gpu 1.31.1; opencv 5.0.0.93; TensorRT 10.16.1.11\n"
        "pip install 'tensorrt-cu13==10.*' && pip install devicecore[torch]\n"
        "0 of 2 nodes; 0000:c1:00.0; token count 7; sm_90a; torch 2.13.0+cpu; CUDA:0; 23.5 GiB"
    )
    assert redacted(text) == text


@given(st.text(), st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_secret_goes_whatever_stands_around_it(before: str, after: str) -> None:
    secret = "hf_" + "Zx9" * 12
    assert "Zx9Zx9Zx9" not in redacted(f"{before} {secret} {after}")


@given(st.text())
def test_redacting_twice_is_redacting_once(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


def test_the_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_TOKEN", "a very secret thing")
    monkeypatch.setenv("UNRELATED", "nobodys business")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    path = tmp_path / "bundle.txt"
    path.write_text("of yesterday")
    path.chmod(0o644)
    write_bundle(path, f"found {Path.home()}/x and a very secret thing")
    text = path.read_text(encoding="utf-8")
    assert "found ~/x and <secret>" in text
    assert "CUDA_VISIBLE_DEVICES=1" in text
    assert "attrs " in text
    assert "nobodys business" not in text
    assert "yesterday" not in text
    assert "pytest" not in text  # other packages are nobody's business either
    assert sys.prefix not in text
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_bundle_follows_no_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("keep")
    link.symlink_to(target)
    write_bundle(link, "report")
    assert target.read_text() == "keep"
    assert not link.is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no such files")
def test_a_bundle_goes_into_a_pipe_or_device_and_does_not_replace_it(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"  # a link as /dev/stdout is one
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    read: list[str] = []
    for path in (pipe, link):
        reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
        reader.start()
        write_bundle(path, "report")
        reader.join(60)
    assert [text.splitlines()[-1] for text in read] == ["report", "report"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert link.is_symlink()
    full = tmp_path / "full"
    try:
        os.mknod(full, stat.S_IFCHR | 0o600, Path("/dev/full").stat().st_rdev)
        full.write_text("")
    except OSError:
        pytest.skip("this user may make no device")
    with pytest.raises(OSError, match="No space left"):
        write_bundle(full, "report")
    assert stat.S_ISCHR(full.stat().st_mode)
