# The service as an image: no compiler, not root. `docker build -t dmin .`
FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/dmin
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
# The default classifier needs no torch. A trained model does: '.[serve,train]' (an index of CPU builds saves gigabytes of CUDA).
RUN /opt/dmin/bin/pip install --constraint constraints.txt '.[serve]'

FROM python:3.11-slim
COPY --from=build /opt/dmin /opt/dmin
RUN useradd --uid 10001 --create-home dmin && install -d -o dmin -g dmin /data
USER 10001
ENV PATH=/opt/dmin/bin:$PATH DMIN_STORE=/data/store.sqlite HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8765
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8765/readyz', timeout=2)"]
STOPSIGNAL SIGTERM
# A public address is refused until a key exists: dmin serve keys create admin --role admin
CMD ["dmin", "serve", "--host", "0.0.0.0"]
