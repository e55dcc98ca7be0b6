# An image that carries nothing but quotad, a static binary, and the certificates by which it knows
# a database's TLS: no shell and no PostgreSQL. So QUOTAD_DATABASE_URL must name a server, and
# `docker run IMAGE keys list` runs a command.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=$VERSION" -o /quotad ./cmd/quotad

FROM scratch
LABEL org.opencontainers.image.title="quotad" \
      org.opencontainers.image.description="quotad alone, without PostgreSQL and without a shell: QUOTAD_DATABASE_URL names its server"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /quotad /quotad
USER 65532:65532
# All addresses, IPv4 and IPv6.
ENV QUOTAD_LISTEN=:8080
EXPOSE 8080
# `quotad health` ends within 3 s. While a node waits for its database it is not healthy.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["/quotad", "health"]
# SIGTERM ends it within 12 s, and --drain-delay: docker stop waits for 10 s, unless it is told more.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/quotad"]
CMD ["serve"]
