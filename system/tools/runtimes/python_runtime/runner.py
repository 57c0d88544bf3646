"""Starts a Python tool: calls its `execute` or `main` with the parameters, or runs it as a script.

argv: this file, the verified file to run, the path it should believe it has, further arguments.
Parameters arrive as one JSON object on standard input. Only cheap imports: this runs before every Python tool.
"""

import json
import sys

_VARIADIC_NAMES = 0x08  # code flag of a function that takes **names


def _call(function, params):
    """Gives a function what it can take: named parameters, and the whole object to a first one nobody named."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & _VARIADIC_NAMES:
        return function(**params)
    named = {name: params[name] for name in names if name in params}
    if code.co_argcount and names[0] not in params:
        # Its own default is better than an object in which there is nothing for it.
        has_default = len(function.__defaults__ or ()) == code.co_argcount
        if not has_default or len(named) < len(params):
            return function(params, **named)
    return function(**named)


def _main():
    verified, shown = sys.argv[1], sys.argv[2]
    with open(verified, "rb") as file:
        source = file.read()
    sys.argv = [shown, *sys.argv[3:]]
    sys.dont_write_bytecode = True
    del sys.path[0]  # the runner's own folder
    if verified == shown:
        folder = shown.rpartition("/")[0]
        sys.path[:0] = [folder, folder + "/lib"]

    code = compile(source, shown, "exec", dont_inherit=True)
    defined = {const.co_name for const in code.co_consts if type(const) is type(code)}
    name = "execute" if "execute" in defined else "main" if "main" in defined else None

    module = type(sys)("__main__" if name is None else "__kiwi_tool__")
    module.__file__ = shown
    module.__builtins__ = __builtins__
    sys.modules[module.__name__] = module
    if name is None:
        exec(code, module.__dict__)
        return

    # A file written to be called is not the main program: its `if __name__ == "__main__"` block stays asleep.
    raw = sys.stdin.buffer.read()
    params = json.loads(raw) if raw.strip() else {}
    exec(code, module.__dict__)
    result = _call(module.__dict__[name], params)
    if hasattr(result, "__await__"):
        import asyncio

        result = asyncio.run(result)
    if result is not None:
        sys.stdout.write(result if isinstance(result, str) else json.dumps(result, default=str))
        sys.stdout.flush()


_main()
