/** HEALTHCHECK of both images: exits with 0 if /healthz on the container's own port answers 200. */
"use strict";

fetch(`http://127.0.0.1:${process.env.PORT}/healthz`, { signal: AbortSignal.timeout(2000) })
  .then((response) => process.exit(response.status === 200 ? 0 : 1))
  .catch(() => process.exit(1));
