"""Proxies that stand before a probed server: nginx and haproxy as packaged by Debian."""

import dataclasses
import pathlib
import sys
from typing import Callable

FORGETFUL = pathlib.Path(__file__).with_name("forgetful.py")
# One of so many answers to writes is lost on the way through the relay.
LOST = 3


@dataclasses.dataclass
class Proxy:
    program: str
    package: str
    # The commands that start the proxy, with the port of each, from the proxy's port, the ports of the gateways behind
    # it, and a directory for its data. The next port is free for a second proxy.
    commands: Callable


def nginx(data, port, backends, settings):
    paths = "".join(f"{name}_temp_path {data};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    servers = "".join(f"server 127.0.0.1:{backend} max_fails=0;" for backend in backends)
    configuration = data / "nginx.conf"
    configuration.write_text(f"""
        daemon off; pid {data}/nginx.pid; worker_processes 2; error_log stderr;
        events {{ worker_connections 1000; }}
        http {{
            access_log off; {paths}
            proxy_cache_path {data}/cache keys_zone=cache:1m;
            upstream gateways {{ {servers} }}
            server {{
                listen 127.0.0.1:{port};
                location / {{
                    proxy_pass http://gateways; proxy_http_version 1.1; proxy_set_header Host $http_host;
                    {settings}
                }}
            }}
        }}
    """)
    return ["nginx", "-c", configuration, "-e", "stderr"]


def haproxy(data, port, backends, settings):
    servers = "".join(f"  server gateway{n} 127.0.0.1:{backend}\n" for n, backend in enumerate(backends))
    configuration = data / "haproxy.cfg"
    configuration.write_text(f"""
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend clients
  bind 127.0.0.1:{port}
  default_backend gateways
backend gateways
  balance roundrobin
  {settings}
{servers}""")
    return ["haproxy", "-db", "-f", configuration]


def in_turn(port, gateways, data):
    return [(port, haproxy(data, port, gateways, ""))]


def caches(settings):
    return lambda port, gateways, data: [(port, nginx(data, port, gateways, f"proxy_cache cache; {settings}"))]


def repeats(proxy, settings):
    """Puts a relay before the first gateway that loses the answers of some writes, so that there is something to repeat."""
    def commands(port, gateways, data):
        lossy = port + 1
        relay = [sys.executable, FORGETFUL, lossy, gateways[0], LOST]
        return [(lossy, relay), (port, proxy(data, port, [lossy, gateways[0]], settings))]
    return commands


IN_TURN = Proxy("haproxy", "haproxy", in_turn)
# Only what the server lets it cache: records carry Cache-Control: no-store.
NGINX_CACHES = Proxy("nginx", "nginx-light", caches("proxy_cache_valid 200 10m;"))
NGINX_CACHES_RECORDS = Proxy("nginx", "nginx-light", caches("proxy_cache_valid 200 10m; proxy_ignore_headers Cache-Control;"))
NGINX_CACHES_ABSENCE = Proxy("nginx", "nginx-light", caches("proxy_cache_valid any 10m;"))
NGINX_REPEATS = Proxy("nginx", "nginx-light", repeats(
    nginx, "proxy_next_upstream error timeout invalid_header http_500 http_502 http_503 http_504 non_idempotent;"))
HAPROXY_REPEATS = Proxy("haproxy", "haproxy", repeats(
    haproxy, "retries 3\n  option redispatch 1\n  retry-on all-retryable-errors"))
