"""The files of a deployment name settings, metrics and commands that exist, and are tight.

Where promtool, hadolint or systemd-analyze are installed, they judge the files as well.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]
from tests.cli.running import answer, run

from sfumato.service import Collector
from sfumato.service.metrics import CollectorMetrics
from sfumato.store import SQLiteStore
from sfumato.wire.receipts import REASONS

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
COMPOSE: Final[Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
RULES: Final[Any] = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())
UNITS: Final = sorted((DEPLOY / "systemd").glob("*.service"))
OTHERS: Final = {"SFUMATO_CONFIG"}
"""Variables that are no setting of a command."""


def variables() -> set[str]:
    """Return all variables that a collector and a shuffler know."""
    settings = answer("config")
    named = {row["variable"] for rows in settings["settings"].values() for row in rows}
    return named | set(settings["secrets"]) | OTHERS


def judged(*words: str) -> None:
    """Let a program judge a file; it is left out where the program is not installed."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"needs {words[0]}")
    ended = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_variable_that_the_files_set_is_a_setting() -> None:
    files = [path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".json"]
    assert len(files) >= 9
    known = variables()
    for path in files:
        named = set(re.findall(r"\bSFUMATO_[A-Z_]+", path.read_text()))
        assert named <= known, path


def test_every_command_of_the_files_exists() -> None:
    services = ("collector-1", "collector-2", "shuffler")
    commands = [COMPOSE["services"][name]["command"] for name in services]
    commands += [re.findall(r"ExecStart=\S+/sfumato (.*)", path.read_text()) for path in UNITS]
    for command in commands:
        assert run(*" ".join(command).split(), "--help").exit_code == 0, command


SEALED: Final = ("collector-1", "collector-2", "database", "shuffler", "proxy", "prometheus")


@pytest.mark.parametrize("name", SEALED)
def test_services_write_nothing_but_their_volumes(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert not [port for port in service.get("ports", ()) if name != "proxy"]


def test_volumes_networks_and_secrets_are_declared() -> None:
    for name, service in COMPOSE["services"].items():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            there = (DEPLOY / source).exists() if source.startswith(".") else False
            assert there or source in COMPOSE["volumes"], (name, volume)
        assert set(service["networks"]) <= set(COMPOSE["networks"])
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
        assert set(service.get("depends_on", ())) <= set(COMPOSE["services"])
    wanted = set(re.findall(r"\$\{([A-Z_]+)", (DEPLOY / "compose.yaml").read_text()))
    given = set(re.findall(r"(?m)^([A-Z_]+)=", (DEPLOY / "example.env").read_text()))
    assert wanted == given


def test_every_collector_is_asked_by_proxy_and_prometheus_and_has_the_database() -> None:
    named = {name for name in COMPOSE["services"] if name.startswith("collector")}
    assert len(named) > 1
    for file in ("caddy/Caddyfile", "prometheus/prometheus.yml"):
        assert set(re.findall(r"(collector-\d+):8080", (DEPLOY / file).read_text())) == named
    for name in named:
        service = COMPOSE["services"][name]
        assert service["networks"]["inside"]["aliases"] == ["collector"]  # for all who ask one
        assert "@database/" in service["environment"]["SFUMATO_SERVE_STORE"]
    assert "postgres" in (DEPLOY / "Dockerfile").read_text()


def test_the_image_runs_as_nobody_and_is_asked_for_its_health() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    last = text[text.rindex("\nFROM ") :]
    assert text.count("\nFROM ") == 2
    assert re.search(r"^USER \d+:\d+$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    assert "pip" not in last
    copied = set(re.findall(r"(?m)^!(\S+)", (DEPLOY.parent / ".dockerignore").read_text()))
    assert all((DEPLOY.parent / name).exists() for name in copied)
    judged("hadolint", "--failure-threshold", "info", str(DEPLOY / "Dockerfile"))


def test_alerts_are_about_metrics_that_exist_and_say_what_to_do(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "collector.db")
    metrics = CollectorMetrics(Collector(store)).text().decode()
    store.close()
    rules = [rule for group in RULES["groups"] for rule in group["rules"]]
    assert len(rules) >= 5
    page = (DEPLOY.parent / "docs/deploying.md").read_text()
    for rule in rules:
        for name in re.findall(r"\bsfumato_\w+", rule["expr"]):
            assert re.search(rf"^(# TYPE )?{name}\b", metrics, re.MULTILINE), name
        for outcomes in re.findall(r'outcome=~?"([^"]*)"', rule["expr"]):
            assert set(outcomes.split("|")) <= {"accepted", "repeated", *REASONS}
        assert rule["annotations"]["what_to_do"].endswith(".")
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert f"`{rule['alert']}`" in page
    judged("promtool", "check", "rules", str(DEPLOY / "prometheus/alerts.yml"))


SERIES: Final = {
    "CollectorIsNotReady": ("sfumato_ready{", "0+0", "1+0"),
    "WorkerDown": ('sfumato_worker_up{worker="2",', "0+0", "1+0"),
    "PeriodsCloseLate": ('sfumato_task_lag_seconds{task="a",', "301+0", "299+0"),
    "PeriodsAreFlagged": ('sfumato_task_flagged_periods{task="a",', "1+0", "0+0"),
    "EngineIsAway": ('sfumato_engine_waiting_seconds{task="a",', "3601+0", "3599+0"),
    "CollectorTurnsDevicesAway": (
        'sfumato_refused_uploads_total{problem="busy",',
        "0+1",
        "7+0",
    ),
}
"""For each of these alerts a series, values that raise it, and values that do not."""


@pytest.mark.parametrize("alert", SERIES)
def test_what_goes_wrong_raises_its_alert_and_nothing_else_does(alert: str, tmp_path: Path) -> None:
    series, loud, quiet = SERIES[alert]
    rules = [rule for group in RULES["groups"] for rule in group["rules"]]
    (rule,) = (rule for rule in rules if rule["alert"] == alert)
    labels = {"instance": "one", **dict(re.findall(r'(worker|task)="(\w+)"', series))}
    annotations = {
        name: re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda label: labels[label[1]], text)
        for name, text in rule["annotations"].items()
    }
    raised = {"exp_labels": labels | rule["labels"], "exp_annotations": annotations}
    cases = [
        {
            "interval": "1m",
            "input_series": [{"series": f'{series}instance="one"}}', "values": f"{values}x30"}],
            "alert_rule_test": [{"eval_time": "29m", "alertname": alert, "exp_alerts": alerts}],
        }
        for values, alerts in ((loud, [raised]), (quiet, []))
    ]
    plan = {"rule_files": [str(DEPLOY / "prometheus/alerts.yml")], "tests": cases}
    (tmp_path / "cases.yml").write_text(yaml.safe_dump(plan))
    judged("promtool", "test", "rules", str(tmp_path / "cases.yml"))


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_units_are_hardened(path: Path) -> None:
    unit: Any = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read_string(path.read_text())
    service = unit["Service"]
    for name in ("NoNewPrivileges", "DynamicUser", "PrivateTmp", "PrivateDevices", "ProtectHome"):
        assert service[name] == "yes", name
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    judged("systemd-analyze", "security", "--offline=true", "--threshold=15", str(path))
