# The image of the appliance, made of its Debian package by `make image` (docs/install.md). BASE is any image of
# the Debian release that the package is for.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN --mount=type=bind,source=buscoupler.deb,target=/buscoupler.deb \
    apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends /buscoupler.deb && \
    apt-get clean && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* /usr/share/doc/buscoupler/docs && \
    install -d -o 10001 -g 10001 -m 0750 /var/lib/buscoupler
USER 10001:10001
WORKDIR /var/lib/buscoupler
VOLUME ["/var/lib/buscoupler"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["buscoupler"]
CMD ["run", "/etc/buscoupler/topology.yaml"]
