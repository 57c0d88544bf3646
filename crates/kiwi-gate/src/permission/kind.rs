//! The kinds of things that are permitted: the keys of a set of permissions.

/// What is permitted, or needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Reading files.
    FilesystemRead,
    /// Writing files.
    FilesystemWrite,
    /// Calling tools.
    Tools,
    /// Running programs by a shell command.
    ShellCommands,
    /// Calling tools of upstream servers.
    McpActions,
    /// Talking to hosts.
    NetworkHosts,
    /// Reading environment variables.
    Env,
    /// Using secrets.
    Secrets,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::FilesystemRead,
        Self::FilesystemWrite,
        Self::Tools,
        Self::ShellCommands,
        Self::McpActions,
        Self::NetworkHosts,
        Self::Env,
        Self::Secrets,
    ];

    /// The key.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FilesystemRead => "filesystem_read",
            Self::FilesystemWrite => "filesystem_write",
            Self::Tools => "tools",
            Self::ShellCommands => "shell_commands",
            Self::McpActions => "mcp_actions",
            Self::NetworkHosts => "network_hosts",
            Self::Env => "env",
            Self::Secrets => "secrets",
        }
    }

    /// What is done, in a sentence: "writing `x` is not allowed".
    pub const fn doing(self) -> &'static str {
        match self {
            Self::FilesystemRead => "reading",
            Self::FilesystemWrite => "writing",
            Self::Tools => "calling",
            Self::ShellCommands => "running",
            Self::McpActions => "calling upstream",
            Self::NetworkHosts => "connecting to",
            Self::Env => "passing on the variable",
            Self::Secrets => "using the secret",
        }
    }
}
