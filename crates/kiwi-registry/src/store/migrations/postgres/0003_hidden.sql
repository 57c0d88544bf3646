-- What not everybody may find is rare, and every search of somebody who is known asks for it.
CREATE INDEX tools_hidden ON tools (number) WHERE visibility <> 'public';
