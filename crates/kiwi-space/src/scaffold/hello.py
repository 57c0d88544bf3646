"""A first tool in Python. Try: kiwi run hello name=world"""

__version__ = "1.0.0"
__tool_description__ = "Say hello to somebody"

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Whom to greet", "default": "world"},
    },
    "additionalProperties": False,
}


def execute(params):
    return {"greeting": f"Hello, {params.get('name', 'world')}!"}
