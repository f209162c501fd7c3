"""The Helm chart: linted and rendered by Helm, and what comes out held against Kubernetes' own schemas.

No cluster is needed. What a value makes is tested; that a cluster runs it is not.
"""

import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.helm import find_helm
from tools.models import FetchError
from tools.postgres.builds import MissingRequirement

from waylore.settings.load import list_settings
from waylore.settings.sections import Settings

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "waylore"
VERSIONS = ("1.25", "1.30", "1.35")
SMALL = {"existingSecret": "waylore"}
LARGE = {
    "secrets": {
        "WAYLORE_STORE": "postgresql://waylore:secret@db/waylore",
        "WAYLORE_EMBEDDING_API_KEY": 'a "quoted" key',
    },
    "autoscaling": {"enabled": True},
    "worker": {"enabled": True, "replicas": 3},
    "spool": {"create": True, "storageClass": "nfs"},
    "models": {"existingClaim": "models"},
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "tls": [{"hosts": ["waylore.example"], "secretName": "tls"}],
    },
    "networkPolicy": {"enabled": True, "from": [{"podSelector": {"matchLabels": {"may": "ask"}}}]},
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "spot", "operator": "Exists"}],
    "podLabels": {"team": "web"},
    "podAnnotations": {"note": "1"},
    "extraEnv": [{"name": "PGSSLMODE", "value": "verify-full"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
    ],
}
Manifest = dict[str, Any]


@pytest.fixture(scope="session")
def command() -> Path:
    try:
        return find_helm()
    except FetchError as error:
        raise MissingRequirement(f"there is no Helm here: {error}") from error


def run(command: Path, verb: str, values: Manifest, folder: Path) -> subprocess.CompletedProcess[str]:
    given = folder / "values.yaml"
    given.write_text(yaml.safe_dump(values))
    named = (
        ["lint", "--strict", str(CHART)] if verb == "lint" else ["template", "mine", str(CHART), "--kube-version=1.30"]
    )
    return subprocess.run([command, *named, "--values", given], capture_output=True, text=True, check=False)


def rendered(command: Path, values: Manifest, folder: Path) -> dict[tuple[str, str], Manifest]:
    done = run(command, "template", values, folder)
    assert done.returncode == 0, done.stderr
    made = [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]
    return {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in made}


@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["small", "large"])
def test_lint_and_schemas(command: Path, values: Manifest, tmp_path: Path) -> None:
    schemas = import_module("kubernetes_validate")  # here, because its grammars take seconds to load
    done = run(command, "lint", values, tmp_path)
    assert done.returncode == 0, done.stdout
    for manifest in rendered(command, values, tmp_path).values():
        for version in VERSIONS:
            schemas.validate(manifest, version, strict=True)


def test_little_is_made_unless_asked_for(command: Path, tmp_path: Path) -> None:
    assert set(rendered(command, SMALL, tmp_path)) == {
        ("Deployment", "mine-waylore"),
        ("Service", "mine-waylore"),
        ("ServiceAccount", "mine-waylore"),
        ("Pod", "mine-waylore-answers"),
        ("NetworkPolicy", "mine-waylore"),
    }
    assert set(rendered(command, LARGE, tmp_path)) == {
        ("Deployment", "mine-waylore"),
        ("Deployment", "mine-waylore-worker"),
        ("Service", "mine-waylore"),
        ("ServiceAccount", "mine-waylore"),
        ("Secret", "mine-waylore"),
        ("PersistentVolumeClaim", "mine-waylore-spool"),
        ("HorizontalPodAutoscaler", "mine-waylore"),
        ("PodDisruptionBudget", "mine-waylore"),
        ("Ingress", "mine-waylore"),
        ("NetworkPolicy", "mine-waylore"),
        ("Pod", "mine-waylore-answers"),
    }


@pytest.mark.parametrize("values", [SMALL, LARGE], ids=["small", "large"])
def test_every_pod_is_locked_down(command: Path, values: Manifest, tmp_path: Path) -> None:
    made = rendered(command, values, tmp_path)
    pods = [m["spec"]["template"]["spec"] for (kind, _), m in made.items() if kind == "Deployment"]
    for pod in [*pods, made["Pod", "mine-waylore-answers"]["spec"]]:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        [container] = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]


def test_service_answers_to_its_names(command: Path, tmp_path: Path) -> None:
    def read_hosts(values: Manifest) -> list[str]:
        made = rendered(command, values, tmp_path)
        [container] = made["Deployment", "mine-waylore"]["spec"]["template"]["spec"]["containers"]
        [value] = [each["value"] for each in container["env"] if each["name"] == "WAYLORE_HTTP_HOSTS"]
        return str(value).split(",")

    inside = ["mine-waylore", *(f"mine-waylore.default{end}" for end in ("", ".svc", ".svc.cluster.local"))]
    assert read_hosts(SMALL) == inside
    more = {"hosts": ["*.internal"], "ingress": {"enabled": True, "hosts": [{"host": "memory.example", "path": "/"}]}}
    assert read_hosts({**SMALL, **more}) == [*inside, "memory.example", "*.internal"]
    assert read_hosts({**SMALL, "settings": {"WAYLORE_HTTP_HOSTS": "mine"}}) == ["mine"]


def test_probes_ports_and_folders(command: Path, tmp_path: Path) -> None:
    made = rendered(command, SMALL, tmp_path)
    pod = made["Deployment", "mine-waylore"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    paths = {probe: container[f"{probe}Probe"]["httpGet"]["path"] for probe in ("startup", "liveness", "readiness")}
    assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    assert container["args"] == ["serve"]
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted == {"/tmp", "/var/lib/waylore", "/var/lib/waylore/spool", "/var/lib/waylore/models"}
    assert {mount["name"] for mount in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    assert pod["enableServiceLinks"] is False  # else a service named waylore sets WAYLORE_PORT
    stopping = int(container["lifecycle"]["preStop"]["exec"]["command"][1]) + 30
    assert pod["terminationGracePeriodSeconds"] > stopping


def test_the_service_finds_the_service_and_not_the_worker(command: Path, tmp_path: Path) -> None:
    made = rendered(command, LARGE, tmp_path)
    wanted = made["Service", "mine-waylore"]["spec"]["selector"].items()

    def labels(name: str) -> set[tuple[str, str]]:
        return set(made["Deployment", name]["spec"]["template"]["metadata"]["labels"].items())

    assert wanted <= labels("mine-waylore")
    assert not wanted <= labels("mine-waylore-worker")
    assert "replicas" not in made["Deployment", "mine-waylore"]["spec"]  # the autoscaler's to say


def test_every_variable_of_ours_is_a_setting(command: Path, tmp_path: Path) -> None:
    made = rendered(command, SMALL, tmp_path)
    [container] = made["Deployment", "mine-waylore"]["spec"]["template"]["spec"]["containers"]
    known = {setting.variable for setting in list_settings(Settings.model_construct())}
    assert {variable["name"] for variable in container["env"]} <= known
    assert container["envFrom"] == [{"secretRef": {"name": "waylore"}}]


def test_another_secret_restarts_the_pods(command: Path, tmp_path: Path) -> None:
    def annotations(password: str) -> object:
        values = {"secrets": {"WAYLORE_STORE": f"postgresql://waylore:{password}@db/waylore"}}
        made = rendered(command, values, tmp_path)
        return made["Deployment", "mine-waylore"]["spec"]["template"]["metadata"]["annotations"]

    assert annotations("old") == annotations("old")
    assert annotations("old") != annotations("new")


def test_several_pods_may_have_uploads_of_their_own(command: Path, tmp_path: Path) -> None:
    made = rendered(command, {**SMALL, "replicas": 2, "spool": {"perPod": True}}, tmp_path)
    pod = made["Deployment", "mine-waylore"]["spec"]["template"]["spec"]
    [spool] = [volume for volume in pod["volumes"] if volume["name"] == "spool"]
    assert spool == {"name": "spool", "emptyDir": {"sizeLimit": "5Gi"}}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, "no database is configured: set existingSecret"),
        ({**SMALL, "replicas": 2}, "several pods need a shared folder for uploads: set spool.create"),
        ({**SMALL, "autoscaling": {"enabled": True}}, "several pods need a shared folder for uploads"),
        (
            {**SMALL, "worker": {"enabled": True}},
            "worker.enabled needs a folder that the service and the worker share: set spool.create",
        ),
        ({**SMALL, "worker": {"enabled": True}, "spool": {"perPod": True}}, "worker.enabled needs a folder"),
        ({**SMALL, "secrets": {"WAYLORE_STORE": "x"}}, "both set"),
        ({**SMALL, "replica": 2}, "Additional property replica is not allowed"),
        ({**SMALL, "spool": {"size": "much"}}, "spool.size"),
        ({**SMALL, "settings": {"WAYLORE-STORE": "x"}}, "settings"),
    ],
)
def test_a_mistake_says_what_to_do(command: Path, values: Manifest, told: str, tmp_path: Path) -> None:
    done = run(command, "template", values, tmp_path)
    assert done.returncode != 0
    assert told in done.stderr


def test_every_default_is_in_the_schema_with_a_type() -> None:
    schema = yaml.safe_load((CHART / "values.schema.json").read_text("utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    assert set(schema["properties"]) == set(values) | {"global"}
