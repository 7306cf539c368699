# The image of API, worker and migrations: `docker run runhost api | worker | migrate upgrade`.

FROM python:3.11.15-slim-trixie AS build
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never
WORKDIR /app
COPY requirements/ requirements/
# uv stands in the development lock, so its hashes are checked like those of what it installs.
RUN sed -n '/^uv==/,/[^\\]$/p' requirements/dev.lock > /tmp/uv.lock \
    && pip install --no-cache-dir --disable-pip-version-check --no-deps --require-hashes --requirement /tmp/uv.lock \
    && uv venv /opt/runhost \
    && uv pip install --python /opt/runhost --require-hashes --requirement requirements/server.lock
# Editable, because only `runhost` is a package: the server runs from the folders of the checkout. The metadata that
# this makes is how workers find the official runners.
COPY pyproject.toml README.md LICENSE ./
COPY runhost/ runhost/
RUN uv pip install --python /opt/runhost --no-deps --editable .

FROM python:3.11.15-slim-trixie
ENV PATH=/opt/runhost/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 RUNHOST_API_HOST=0.0.0.0
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin runhost
WORKDIR /app
COPY --from=build /opt/runhost /opt/runhost
COPY pyproject.toml LICENSE ./
COPY deploy/check_api.py deploy/check_worker.py deploy/
COPY runhost/ runhost/
COPY workflows/ workflows/
COPY activities/ activities/
COPY host_api/ host_api/
COPY providers/ providers/
COPY runners/ runners/
COPY api/ api/
COPY stores/ stores/
COPY migrations/ migrations/
RUN python -m compileall -q /app
USER 10001
EXPOSE 8080
STOPSIGNAL SIGTERM
# The API's; a worker is checked by deploy/check_worker.py instead.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["python", "deploy/check_api.py"]
ENTRYPOINT ["runhost"]
CMD ["api"]
