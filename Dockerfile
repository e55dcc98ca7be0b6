# The image holds one static binary and nothing else: no shell and no PostgreSQL,
# so QUOTAD_DATABASE_URL must name a server.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=$VERSION" -o /quotad ./cmd/quotad

FROM scratch
# For TLS to the database.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /quotad /quotad
USER 65532:65532
ENV QUOTAD_LISTEN=0.0.0.0:8080
EXPOSE 8080
ENTRYPOINT ["/quotad"]
CMD ["serve"]
