/** Plain page: the browser's own loader plays the progressive file; no script sees its bytes. */
/* global sampleVideo */
"use strict";

sampleVideo.src = "/media/progressive.mp4";
