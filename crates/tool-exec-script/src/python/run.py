"""Runs the code of a tool: see `tool-exec-script`.

Started as `run.py MODE ENTRY [PACKAGES]` in the working directory of the tool. Arguments come as one JSON object on
standard input. The outcome of a function goes to standard output as one line of JSON after a record separator; so does
an exception, in either mode. What the code of a function prints goes to standard error, and in front of the outcome if
it is streamed: then MODE ends in `+stream`.
"""

import json
import os
import sys

MARK = b"\x1e"
MAX_FRAMES = 20
MAX_TEXT = 2000


def declares_run(tree):
    import ast

    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "run":
            return True
        if isinstance(node, ast.Assign):
            if any(isinstance(target, ast.Name) and target.id == "run" for target in node.targets):
                return True
        if isinstance(node, ast.ImportFrom):
            if any((alias.asname or alias.name) == "run" for alias in node.names):
                return True
    return False


def cut(text):
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "..."


def frames(traceback, root, sources):
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        path = code.co_filename
        if path.startswith(root) and not path.startswith(root + ".toolplane/"):
            line = traceback.tb_lineno
            if path not in sources:
                try:
                    with open(path, "rb") as file:
                        sources[path] = file.read().decode("utf-8", "replace").splitlines()
                except OSError:
                    sources[path] = []
            lines = sources[path]
            text = lines[line - 1].strip() if line and line <= len(lines) else ""
            found.append({"file": path[len(root):], "line": line, "function": code.co_name, "text": cut(text)})
        traceback = traceback.tb_next
    return found[-MAX_FRAMES:]


def described(error, root, sources):
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__", "tool") else kind.__module__ + "." + kind.__qualname__
    try:
        message = cut(str(error))
    except Exception:
        message = ""
    found = frames(error.__traceback__, root, sources)
    if isinstance(error, SyntaxError) and error.filename and error.filename.startswith(root):
        message = cut(error.msg or "")
        found.append({
            "file": error.filename[len(root):],
            "line": error.lineno or 0,
            "function": "<module>",
            "text": cut((error.text or "").strip()),
        })
    return {"type": cut(name), "message": message, "traceback": found}


def written(record):
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(record, allow_nan=False).encode("utf-8")


def send(channel, record):
    data = memoryview(MARK + record + b"\n")
    while data:
        data = data[os.write(channel, data):]


def call(run, channel):
    text = sys.stdin.buffer.read()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    arguments = json.loads(text)
    try:
        value = run(**arguments)
    except TypeError as error:
        # Raised by the call itself: the arguments do not fit the parameters.
        if error.__traceback__.tb_next is None:
            send(channel, written({"arguments": cut(str(error))}))
            return
        raise
    if hasattr(value, "__await__"):
        import asyncio

        async def result():
            return await value

        value = asyncio.run(result())
    try:
        record = written({"result": value})
    except (TypeError, ValueError, RecursionError) as error:
        send(channel, written({"no_json": cut(str(error))}))
        return
    send(channel, record)


def main():
    mode, entry = sys.argv[1], sys.argv[2]
    is_streamed = mode.endswith("+stream")
    mode = mode.removesuffix("+stream")
    root = os.getcwd() + "/"
    path = root + entry
    sys.path.insert(0, os.path.dirname(path))
    if os.path.dirname(path) + "/" != root:
        sys.path.insert(1, root[:-1])
    if len(sys.argv) > 3:
        import site

        site.addsitedir(sys.argv[3])
    sys.argv = [path]
    channel = os.dup(1)
    os.set_inheritable(channel, False)
    sources = {}
    is_function = False
    try:
        with open(path, "rb") as file:
            source = file.read()
        sources[path] = source.decode("utf-8", "replace").splitlines()
        # The flag of `ast.parse`: one parse serves the search for the function and the code.
        tree = compile(source, path, "exec", 0x400, dont_inherit=True)
        is_function = declares_run(tree)
        code = compile(tree, path, "exec", dont_inherit=True)
        if mode == "function" and not is_function:
            send(channel, written({"no_function": True}))
            return 1
        import types

        module = types.ModuleType("tool" if is_function else "__main__")
        module.__file__ = path
        sys.modules[module.__name__] = module
        if is_function and not is_streamed:
            os.dup2(2, 1)
        exec(code, module.__dict__)
        if is_function:
            call(module.run, channel)
        sys.stdout.flush()
        return 0
    except SystemExit as error:
        sys.stdout.flush()
        code = error.code
        if code is None or code == 0:
            if is_function:
                send(channel, written({"exited": 0}))
            return 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
        return code
    except BaseException as error:
        try:
            sys.stdout.flush()
        except Exception:
            pass
        send(channel, written({"exception": described(error, root, sources)}))
        return 1


def leave(code):
    if "tool" not in sys.modules:
        sys.exit(code)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        pass
    # Threads that a function left behind do not hold the call.
    os._exit(code & 0xFF)


if __name__ == "__main__":
    leave(main())
