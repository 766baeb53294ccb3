/** Plain page: the browser's own loader plays the progressive file, or `?source=`. No script sees its bytes. */
/* global location, sampleVideo, URLSearchParams */
"use strict";

sampleVideo.src = new URLSearchParams(location.search).get("source") ?? "/media/progressive.mp4";
