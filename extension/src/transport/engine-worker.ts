/** Entry of the packaged Worker: the download engine (receiver and codec) of the client library. */
import "@tributary/client/worker";
