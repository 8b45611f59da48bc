package serve

// Usage is the help of the server. The caller prints it.
const Usage = `
Usage: weir [serve] [options]
       weir sim | bench | inspect | check | version   (each has its own --help)

Server options:
    -a, --addr, --net <host>         Bind to host address (default: 0.0.0.0)
    -p, --port <port>                Use port for clients, -1 for any free one (default: 4222)
    -n, --name
        --server_name <server_name>  Server name (default: the server's id)
    -P, --pid <file>                 File to store PID
    -m, --http_port <port>           Use port for http monitoring (default: off)
    -c, --config <file>              Configuration file
    -t                               Test configuration and exit
    -sl,--signal <signal>=<pid>      Send signal to a weir process (ldm, stop, quit, term, reopen, reload)
                                     <pid> is a process id (e.g. 1) or the path of a PID file
        --client_advertise <string>  Client URL to advertise
        --ports_file_dir <dir>       Create a ports file in the directory (<executable>_<pid>.ports)

Logging options:
    -l, --log <file>                 File to redirect log output (default: standard error)
    -T, --logtime                    Timestamp log entries (default: true)
        --logtime_utc                Timestamps in UTC instead of local timezone (default: false)
    -D, --debug                      Enable debugging output
    -V, --trace                      Trace the raw protocol
    -VV                              Verbose trace (traces system account as well)
    -DV                              Debug and trace
    -DVV                             Debug and verbose trace (traces system account as well)
        --log_size_limit <limit>     Log file size in bytes at which it is rotated (default: never)
        --max_traced_msg_len <len>   Maximum printable length for traced messages (default: unlimited)

JetStream options:
    -js, --jetstream                 Enable JetStream
    -sd, --store_dir <dir>           Set the storage directory; data is kept in <dir>/jetstream

Authorization options (visible in the list of processes; a configuration file is not):
        --user <user>                User required for connections
        --pass <password>            Password required for connections
        --auth <token>               Authorization token required for connections

TLS options:
        --tls                        Enable TLS for clients, without verification of them
        --tlscert <file>             Certificate of the server
        --tlskey <file>              Private key of the certificate
        --tlsverify                  Enable TLS, verify the certificates of clients
        --tlscacert <file>           Authorities by which certificates of clients are verified

Cluster options:
        --cluster,
        --cluster_listen <url>       Where other servers connect: nats://[user:password@]host:port (default: off)
        --routes <urls>              Servers to connect to, separated by commas; from them it learns of the others
        --cluster_name <name>        Name of the cluster
        --cluster_advertise <addr>   Address to tell other servers instead of the one that it listens on
        --no_advertise               Do not tell other servers where clients connect
        --connect_retries <n>        How often to dial a server that others told of (default: always again)

Profiling options:
        --profile <mode>             Write a profile until the server ends: cpu, mem, allocs, block, mutex, goroutine, trace
        --profile_dir <dir>          Directory for the profile (default: the current one)

Common options:
    -h, --help                       Show this message
    -v, --version                    Show version

Flags take one dash or two, and the form -x value or -x=value. They override the configuration file.
`
