"""The layering and the sizes the project keeps to, read off the source tree itself.

tracer imports none of ours; interpreters and lowering import tracer and never each other; api imports all three;
nobody imports api; only lowering imports jaxlib. One family of primitives has one file name in four places. The tree
is only read, so that these tests have an answer while something cannot be imported.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = {
    "tracer": {"tracer"},
    "interpreters": {"tracer", "interpreters"},
    "lowering": {"tracer", "lowering"},
    "api": {"tracer", "interpreters", "lowering", "api"},
}
OUTSIDE = {"numpy", "ml_dtypes"}
OUTSIDE_OF_LAYER = {"tracer": OUTSIDE, "interpreters": OUTSIDE, "lowering": {*OUTSIDE, "jaxlib"}, "api": OUTSIDE}
MODULE_LINES, FUNCTION_LINES = 600, 60
ARROWS = 87  # between the rooms of api/: who imports from whom; 20 are of the front door, 8 of what looks like JAX
FILES_ENTERED = 85  # by a first call of jit(grad(f)), see docs/decisions/0024-the-files-of-one-call.md
MODULES_IMPORTED = 175  # of ours, by `import tapeless`: what few programs use is imported when it is used


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and re.fullmatch(r"(_?typing\.)?TYPE_CHECKING", ast.unparse(node.test)) is not None


def imported_names(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Dotted names that a statement may import: of `from a import b` both could be the module, so `a.b` is given."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    else:
        yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


@dataclass(frozen=True)
class Module:
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(), str(self.path))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return [*ast.walk(self.tree)]

    @property
    def layer(self) -> str:
        return self.path.relative_to(ROOT).parts[0]

    @cached_property
    def name(self) -> str:
        """The installed name: api/random.py is tapeless.random, tracer/core.py is tapeless.tracer.core."""
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        parts = parts[1:] if parts[0] == "api" else parts
        return ".".join(("tapeless", *(part for part in parts if part != "__init__")))

    def imports(self, under_type_checking: bool = True) -> list[str]:
        return self._imports[under_type_checking]

    @cached_property
    def _imports(self) -> dict[bool, list[str]]:
        return {flag: [*self._walk_imports(flag)] for flag in (False, True)}

    def _walk_imports(self, under_type_checking: bool) -> Iterator[str]:
        todo: list[ast.AST] = [self.tree]
        while todo:
            node = todo.pop()
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                yield from imported_names(node)
            elif under_type_checking or not is_type_checking(node):
                todo.extend(ast.iter_child_nodes(node))

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        return (node for node in self.nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))


MODULES = [Module(path) for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]
MODULE_OF_NAME = {module.name: module for module in MODULES}


def layer_of(name: str) -> str:
    second = name.split(".")[1]
    return second if second in LAYERS else "api"


def resolve(name: str) -> str | None:
    """The module of ours that a name belongs to: `tapeless.tracer.core.bind` is in `tapeless.tracer.core`."""
    while name not in MODULE_OF_NAME and "." in name:
        name = name.rpartition(".")[0]
    return name if name in MODULE_OF_NAME else None


def defines_primitives(module: Module) -> bool:
    calls = (node.func for node in module.nodes if isinstance(node, ast.Call))
    return any(isinstance(function, ast.Name) and function.id.endswith("Primitive") for function in calls)


def modules_in(folder: str) -> list[Module]:
    return [m for m in MODULES if m.path.parent == ROOT / folder and m.path.name != "__init__.py"]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring, which are to be as long as it takes."""
    first = function.body[0]
    docstring = first if ast.get_docstring(function) is not None else None
    return function.end_lineno - function.lineno + 1 - (docstring.end_lineno - docstring.lineno + 1 if docstring else 0)


# ---- imports


def test_imports_follow_the_diamond():
    ours = [(module, name) for module in MODULES for name in module.imports() if name.split(".")[0] == "tapeless"]
    wrong = [f"{module} imports {name}" for module, name in ours if layer_of(name) not in LAYERS[module.layer]]
    assert not wrong


def test_imports_from_outside():
    """numpy and ml_dtypes everywhere, jaxlib in lowering, the standard library; nothing relative."""
    known = {*sys.stdlib_module_names, "tapeless"}
    names = [(module, name.split(".")[0]) for module in MODULES for name in module.imports()]
    wrong = [f"{module} imports {name}" for module, name in names if name not in known | OUTSIDE_OF_LAYER[module.layer]]
    assert not wrong


def test_no_import_inside_a_function():
    inside = [
        f"{module}:{node.lineno}"
        for module in MODULES
        for function in module.functions()
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    assert not inside


def test_no_function_inside_another_calls_itself():
    """It would hold itself, and so all it closes over, arrays among them, until the collector of cycles comes by."""
    inside = [
        f"{module}:{inner.lineno} {inner.name}"
        for module in MODULES
        for function in module.functions()
        for inner in ast.walk(function)
        if isinstance(inner, ast.FunctionDef) and inner is not function
        for node in ast.walk(inner)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == inner.name
    ]
    assert not inside


def test_no_cycle_between_modules():
    """`from tapeless.tracer import core` depends on core, not on the package's __init__."""
    graph = {
        module.name: {resolve(name) for name in module.imports(under_type_checking=False)} - {None, module.name}
        for module in MODULES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("imports form a cycle: " + " <- ".join(error.args[1]))


def loaded_with(name: str) -> set[str]:
    """The modules that are imported with a module, packages of the modules included."""
    found, todo = set[str](), [name]
    while todo:
        if (name := todo.pop()) not in found and name in MODULE_OF_NAME:
            found.add(name)
            imports = MODULE_OF_NAME[name].imports(under_type_checking=False)
            todo += [name.rpartition(".")[0], *filter(None, map(resolve, imports))]
    return found


def test_packages_that_import_their_own_modules_are_imported_before_these():
    """A thread that imports such a module first holds it, waits for the package, and another may wait the other way."""
    early = loaded_with("tapeless")
    inits = [m for m in MODULES if m.path.name == "__init__.py" and m.name not in early]
    eager = [m.name for m in inits if any(n.startswith(f"{m.name}.") for n in m.imports(under_type_checking=False))]
    wrong = [
        f"{module}:{node.lineno}: import from {package}, or the module by `from {package} import`"
        for package in eager
        for module in MODULES
        if not f"{module.name}.".startswith(f"{package}.")
        for node in module.nodes
        if isinstance(node, ast.ImportFrom) and f"{node.module}".startswith(f"{package}.")
    ]
    assert eager
    assert not wrong


def room(name: str) -> str:
    """The folder of api/ that a module is in; its flat modules are one room, the front door."""
    folder = name.split(".")[1:2]
    return folder[0] if folder and (ROOT / "api" / folder[0]).is_dir() else ""


def test_rooms_of_api_import_from_few_others():
    imports = [(module.name, resolve(name)) for module in MODULES if module.layer == "api" for name in module.imports()]
    arrows = {(room(name), room(other)) for name, other in imports if other and MODULE_OF_NAME[other].layer == "api"}
    assert len([arrow for arrow in arrows if arrow[0] != arrow[1]]) <= ARROWS
    assert {of for of, to in arrows if to == "like_jax"} == {"", "extend", "like_jax"}


BLOCKED_IMPORT = """
import importlib.util, pkgutil, sys
sys.modules.update(dict.fromkeys(["jaxlib", "jax", "tapeless.lowering"]))
spec = importlib.util.find_spec("tapeless")
# The bare package: its __init__ is api, which needs jaxlib.
sys.modules["tapeless"] = importlib.util.module_from_spec(spec)
import tapeless.tracer.core
del tapeless.tracer.core.Primitive.bind  # nothing is computed: modules are imported while programs are traced, too
for layer in ("tapeless.tracer", "tapeless.interpreters"):
    package = importlib.import_module(layer)
    for found in pkgutil.walk_packages(package.__path__, layer + "."):
        importlib.import_module(found.name)
loaded = [name for name in sys.modules if name.startswith(("tapeless.tracer.", "tapeless.interpreters."))]
print(len(loaded))
"""


def test_tracer_and_interpreters_import_without_jaxlib():
    done = subprocess.run([sys.executable, "-W", "error", "-c", BLOCKED_IMPORT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    modules = [m for m in MODULES if m.layer in ("tracer", "interpreters")]
    assert int(done.stdout) == len(modules) - 2  # all but the two packages themselves


def test_importing_loads_nothing_that_is_slow_to_load():
    """What is needed later, if at all: jaxlib comes with the first array."""
    code = "import gc, sys; before = gc.get_threshold(); import tapeless; assert gc.get_threshold() == before"
    code += "; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    slow = {"jax", "jaxlib", "numpy.random", "scipy", "unittest", "asyncio", "multiprocessing", "html", "hashlib"}
    assert slow.isdisjoint(loaded)
    assert len([name for name in loaded if name.split(".")[0] == "tapeless"]) <= MODULES_IMPORTED


def test_a_first_gradient_enters_few_files():
    done = subprocess.run([sys.executable, "-m", "tests.files_entered"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) <= FILES_ENTERED, done.stdout


@pytest.mark.parametrize(("frozen", "collections"), [(False, 0), (True, 1)])
def test_importing_collects_no_garbage_and_leaves_frozen_objects_frozen(frozen, collections):
    """What the import made is old after it, and not walked through, unless that would unfreeze objects of others."""
    code = "import gc, numpy, jaxlib.xla_client; found = []; gc.freeze() if {} else None; gc.collect()"
    code += "; n = gc.get_freeze_count(); gc.callbacks.append(lambda phase, info: found.append(phase))"
    code += "; import tapeless; young = gc.get_count()[0]"
    code += "; gc.callbacks.clear(); print(gc.get_freeze_count() == n, found.count('start'), young < 1000)"
    done = subprocess.run([sys.executable, "-c", code.format(frozen)], capture_output=True, text=True)
    assert done.stdout.split() == ["True", str(collections), "True"], done.stderr


# ---- the tree


def test_packages_in_pyproject_are_the_packages_of_the_tree():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(m.name for m in MODULES if m.path.name == "__init__.py")


def test_every_folder_with_source_is_a_package():
    assert all((module.path.parent / "__init__.py").exists() for module in MODULES)


def test_test_folders_mirror_source_folders():
    """tests/ is a package all the way down, else its tracer/ would shadow ours."""
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}
    assert all((folder / "__init__.py").exists() for folder in folders)
    source = {str(module.path.parent.relative_to(ROOT)) for module in MODULES}
    mirrored = {str(folder.relative_to(ROOT / "tests")) for folder in folders} - {"."}
    assert {folder for folder in mirrored if folder.split("/")[0] in LAYERS} <= source


def test_size_of_modules():
    lines = {str(module): len(module.path.read_text().splitlines()) for module in MODULES}
    assert {module: n for module, n in lines.items() if n > MODULE_LINES} == {}


def test_size_of_functions():
    lines = {f"{module}:{f.lineno} {f.name}": body_lines(f) for module in MODULES for f in module.functions()}
    assert {function: n for function, n in lines.items() if n > FUNCTION_LINES} == {}


def test_modules_say_what_they_do():
    assert [str(module) for module in MODULES if not ast.get_docstring(module.tree)] == []


# ---- names


def classes(module: Module) -> Iterator[str]:
    return (node.name.lstrip("_") for node in module.nodes if isinstance(node, ast.ClassDef))


def repeated(pairs: Iterable[tuple[Hashable, str]]) -> dict[Hashable, list[str]]:
    """Group places by key, and keep the keys that have several places."""
    found = defaultdict[Hashable, list[str]](list)
    for key, place in pairs:
        found[key].append(place)
    return {key: places for key, places in found.items() if len(places) > 1}


def _targets(node: ast.Assign) -> Iterator[ast.expr]:
    for target in node.targets:
        yield from target.elts if isinstance(target, ast.Tuple) else [target]


def _undeclared_variables(module: Module) -> Iterator[str]:
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Name | ast.Attribute | ast.Constant):
            names = [target.id for target in _targets(node) if isinstance(target, ast.Name)]
            yield from (name for name in names if name.islower() and name[0] != "_")


def _undeclared_attributes(kind: ast.ClassDef) -> Iterator[str]:
    inits = [f for f in kind.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"]
    nodes = kind.body + [node for init in inits for node in ast.walk(init)]
    declared = {ast.unparse(node.target).removeprefix("self.") for node in nodes if isinstance(node, ast.AnnAssign)}
    for node in nodes:
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant):
            own = [t.attr for t in _targets(node) if isinstance(t, ast.Attribute) and ast.unparse(t.value) == "self"]
            yield from (f"{kind.name}.{name}" for name in own if name not in declared and name[0] != "_")


def test_public_variables_and_attributes_declare_their_types():
    """Type checkers may infer them differently. `pyright --verifytypes tapeless` says so of more; .ci/run asks it."""
    variables = [f"{module}.{name}" for module in MODULES for name in _undeclared_variables(module)]
    kinds = [(module, node) for module in MODULES for node in module.nodes if isinstance(node, ast.ClassDef)]
    public = [(module, kind) for module, kind in kinds if kind.name[0] != "_"]
    assert variables + [f"{module}.{name}" for module, kind in public for name in _undeclared_attributes(kind)] == []


def test_no_class_name_is_defined_twice():
    """A leading underscore is no difference: a reader who searches a class by its name finds one."""
    assert repeated((name, str(module)) for module in MODULES for name in classes(module)) == {}


def test_no_two_modules_of_a_folder_differ_by_a_plural_or_a_preposition():
    bare = [(module, re.sub(r"(_of|_inside)$|s$", "", module.path.stem)) for module in MODULES]
    assert repeated(((module.path.parent, stem), str(module)) for module, stem in bare) == {}
    assert [str(module) for module in MODULES if re.search(r"_(of|inside)$", module.path.stem)] == []


def test_no_two_modules_below_api_have_one_name():
    """Families have (below); `array` is the class and its buffers. The names in api/ are those that users import."""
    families = {m.path.stem for m in modules_in("tracer/primitives") if defines_primitives(m)}
    inner = [m for m in MODULES if m.layer != "api" and m.path.stem not in {*families, "array", "__init__"}]
    assert repeated((m.path.stem, str(m)) for m in inner) == {}


# First words of a relative or genitive without a head: "What is known of what is one thing or another."
HEADLESS = re.compile(
    "(What|That|Those|How|Whether|Where|Which|Who|Whose|When|Of|It|Its|They|Their|These|This|With|Without|For|From|As|By"
    r"|In|On|To|If)\b"
)


def test_sentences_of_docstrings_have_one_relative_clause():
    """Of those that begin with "which" or "who"; "that" is a conjunction, too."""
    ends, pronouns = re.compile(r"[.:;?!]\s|\n\s*\n|>>>.*"), re.compile(r"\b(?:which|who|whose|whom)\b")
    nested = [
        f"{module} {getattr(node, 'name', '')}: {sentence}"
        for module in MODULES
        for node in module.nodes
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node))
        for sentence in ends.split(re.sub("`[^`]*`", "", text))
        if len(pronouns.findall(sentence)) > 1
    ]
    assert not nested


def test_docstrings_begin_with_a_verb_or_a_noun():
    """The first line says what comes out of what goes in: "Join two abstract values: the facts that hold for both."."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [
        (module, ast.get_docstring(node) or "")
        for module in MODULES
        for node in module.nodes
        if isinstance(node, documented)
    ]
    assert [f"{module}: {text.splitlines()[0]}" for module, text in docstrings if HEADLESS.match(text)] == []


# ---- the mirror: one family, three files (that no rule is missing: test_rules.py)


@pytest.mark.parametrize("folder", ["interpreters/rules", "lowering/rules"])
def test_a_family_has_the_same_file_name_in_three_places(folder: str):
    families = {m.path.stem for m in modules_in("tracer/primitives") if defines_primitives(m)}
    assert {m.path.stem for m in modules_in(folder)} == families


def test_rules_are_about_the_primitives_of_their_family():
    """A rule of what tracer/primitives/<family>.py defines is in <folder>/<family>.py, where a reader looks for it."""
    modules = [module for module in MODULES if module.path.parent.name == "rules"]
    primitives = [(module, name) for module in modules for name in module.imports() if name.endswith("_p")]
    assert [f"{m} imports {name}" for m, name in primitives if name.split(".")[-2] != m.path.stem] == []
