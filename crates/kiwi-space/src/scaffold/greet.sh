#!/usr/bin/env bash
# A first tool in Bash. Try: kiwi run greet name=world
#
# kiwi: version: "1.0.0"
# kiwi: description: Greet somebody from Bash
# kiwi: parameters:
# kiwi:   type: object
# kiwi:   properties:
# kiwi:     name: {type: string, description: Whom to greet, default: world}
# kiwi:   additionalProperties: false
set -euo pipefail

printf 'Hello from Bash, %s!\n' "${KIWI_PARAM_NAME:-world}"
