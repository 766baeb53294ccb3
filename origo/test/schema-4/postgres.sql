CREATE TABLE public.config_versions (
    version integer NOT NULL,
    author character varying,
    reason character varying,
    at_ms double precision,
    content character varying
);
CREATE TABLE public.convictions (
    kind character varying NOT NULL,
    proxy character varying NOT NULL,
    network character varying NOT NULL,
    at_ms double precision
);
CREATE SEQUENCE public.downloads_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.downloads (
    seq bigint DEFAULT nextval('public.downloads_seq'::regclass),
    id uuid NOT NULL,
    client_id uuid NOT NULL,
    received_at_ms double precision NOT NULL,
    started_at_ms double precision NOT NULL,
    source text,
    purpose text,
    client_version text,
    agent text,
    os text,
    player text,
    config_version bigint,
    experiments text,
    comment text,
    user_comment text,
    url text,
    content_type text,
    range_start bigint,
    range_end bigint,
    status bigint,
    total_bytes bigint,
    sha256 text,
    mode text,
    connections bigint,
    generation_size bigint,
    window_packets bigint,
    symbol_bytes bigint,
    feedback_every_packets bigint,
    feedback_every_ms double precision,
    engine text,
    outcome text,
    error_kind text,
    error_message text,
    fallback_kind text,
    fallback_message text,
    fallback_bytes bigint,
    duration_ms double precision,
    connect_ms double precision,
    head_ms double precision,
    first_byte_ms double precision,
    first_packet_ms double precision,
    server_fetch_ms double precision,
    close_ms double precision,
    net_bytes bigint,
    gross_bytes bigint,
    direct_bytes bigint,
    generation_count bigint,
    symbol_count bigint,
    feedback_frames bigint,
    proxies_used bigint,
    proxies_failed bigint,
    packets bigint,
    innovative bigint,
    duplicate bigint,
    late bigint,
    rejected bigint,
    lost bigint,
    rtt_ms_min double precision,
    transport text,
    proxies text NOT NULL,
    vouched_by text
);
CREATE TABLE public.enrolment_codes (
    digest character varying NOT NULL,
    author character varying,
    expires_at_ms double precision,
    used_by character varying
);
CREATE SEQUENCE public.errors_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.errors (
    seq bigint DEFAULT nextval('public.errors_seq'::regclass),
    id uuid NOT NULL,
    received_at_ms double precision NOT NULL,
    client_id uuid,
    at_ms double precision NOT NULL,
    source text,
    kind text,
    message text,
    url text,
    led_to text
);
CREATE TABLE public.experiments (
    id character varying NOT NULL,
    created_at_ms double precision,
    content character varying
);
CREATE TABLE public.logins (
    id character varying NOT NULL,
    user_name character varying,
    csrf_token character varying,
    expires_at_ms double precision
);
CREATE TABLE public.origo_schema (
    version integer
);
CREATE TABLE public.playlists (
    object character varying NOT NULL,
    content bytea
);
CREATE TABLE public.proxy_keys (
    id character varying NOT NULL,
    name character varying,
    public_key character varying,
    enrolled_at_ms double precision,
    author character varying,
    connected_at_ms double precision,
    revoked_at_ms double precision
);
CREATE TABLE public.proxy_states (
    id character varying NOT NULL,
    state character varying,
    name character varying,
    is_convicted boolean DEFAULT false
);
CREATE TABLE public.publication_objects (
    key character varying,
    name character varying,
    revision bigint,
    object character varying,
    bytes bigint,
    is_playlist boolean
);
CREATE TABLE public.publications (
    key character varying NOT NULL,
    name character varying NOT NULL,
    revision bigint NOT NULL,
    state character varying,
    manifest character varying,
    files bigint,
    bytes bigint,
    proxies character varying,
    at_ms double precision
);
CREATE TABLE public.publishers (
    key character varying NOT NULL,
    label character varying,
    author character varying,
    enrolled_at_ms double precision,
    quota_bytes bigint,
    revoked_at_ms double precision
);
CREATE TABLE public.secrets (
    name character varying NOT NULL,
    content character varying
);
CREATE TABLE public.traces (
    id uuid NOT NULL,
    received_at_ms double precision NOT NULL,
    packed bytea NOT NULL
);
CREATE TABLE public.users (
    name character varying NOT NULL,
    password character varying,
    role character varying,
    created_at_ms double precision,
    last_login_ms double precision
);
CREATE TABLE public.views (
    id character varying NOT NULL,
    created_at_ms double precision,
    content character varying
);
INSERT INTO public.config_versions VALUES (1, 'ada', 'why', 1790000000000, '{"client.connections":2}');
INSERT INTO public.convictions VALUES ('evidence', 'proxy-1', 'm', 1790000000000);
INSERT INTO public.downloads VALUES (1, '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000009', 1790000000000, 1790000000000.25, 'cli', 'request', '0.1.0', 'node/20', 'linux', 'hls.js', 3, 'e1=small windowe2=b = 2', 'ünïcode 🎬', 'it stalled once', 'http://origin.example/a/segment-1.m4s', 'video/mp4', 0, 99999, 206, 100000, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'coded-mutp', 2, 24, 240, 1100, 8, 20, 'native/avx2', 'failed', 'originFailed', 'the origin closed early
at byte 9', 'proxyLost', 'proxy-2 lost', 0, 855.5, 80.5, 275, 280, 279.25, 271, 12.5, 100000, 112716, 0, 4, 91, 13, 2, 1, 101, 91, 5, 4, 1, 2, 0.5, 'mixed', '[{"id":"p1","name":"proxy-1","bytes":66960,"packets":60,"innovative":50,"duplicate":5,"late":4,"rejected":1,"lost":2,"rttMs":0.5,"transport":"webrtc","state":"used"},{"id":"p2","bytes":45756,"packets":41,"innovative":41,"duplicate":0,"late":0,"rejected":0,"lost":0,"rttMs":null,"state":"failed","error":{"kind":"proxyLost","message":"closed"}}]', NULL);
INSERT INTO public.downloads VALUES (2, '00000000-0000-4000-8000-000000000002', '00000000-0000-4000-8000-000000000009', 1790000000000, 1790000000000.25, 'cli', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'http://origin.example/a/segment-1.m4s', NULL, NULL, NULL, 206, NULL, NULL, 'direct', 2, NULL, NULL, NULL, NULL, NULL, NULL, 'complete', NULL, NULL, NULL, NULL, NULL, 855.5, NULL, NULL, 280, NULL, 271, NULL, 100000, 112716, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, '[]', NULL);
INSERT INTO public.enrolment_codes VALUES ('digest', 'ada', 0, NULL);
INSERT INTO public.errors VALUES (1, '00000000-0000-4000-8000-000000000003', 1790000000000, '00000000-0000-4000-8000-000000000009', 1790000000000, 'proxy', 'egressRefused', '10.0.0.7 is private', NULL, NULL);
INSERT INTO public.origo_schema VALUES (4);
INSERT INTO public.playlists VALUES ('0000000000000000000000000000000000000000000000000000000000000000-7', '\x234558544d3355');
INSERT INTO public.proxy_states VALUES ('proxy-1', 'disabled', 'Proxy 1', false);
INSERT INTO public.publication_objects VALUES ('KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK', 'film', 1, '0000000000000000000000000000000000000000000000000000000000000000-7', 7, true);
INSERT INTO public.publications VALUES ('KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK', 'film', 1, 'released', 'signed', 1, 7, '["proxy-1"]', 1790000000000);
INSERT INTO public.publishers VALUES ('KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK', 'Ana', 'Ana', 1790000000000, NULL, NULL);
INSERT INTO public.secrets VALUES ('key', 'secret');
INSERT INTO public.traces VALUES ('00000000-0000-4000-8000-000000000001', 1790000000000, '\x1f8b0800000000000003ab56ca4c51b2523280025d306102222c605c283054aa05005187b4422d000000');
INSERT INTO public.users VALUES ('ada', 'x', 'admin', 1790000000000, NULL);
SELECT pg_catalog.setval('public.downloads_seq', 2, true);
SELECT pg_catalog.setval('public.errors_seq', 1, true);
ALTER TABLE ONLY public.config_versions
    ADD CONSTRAINT config_versions_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.convictions
    ADD CONSTRAINT convictions_pkey PRIMARY KEY (kind, proxy, network);
ALTER TABLE ONLY public.downloads
    ADD CONSTRAINT downloads_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.enrolment_codes
    ADD CONSTRAINT enrolment_codes_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.errors
    ADD CONSTRAINT errors_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.experiments
    ADD CONSTRAINT experiments_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.logins
    ADD CONSTRAINT logins_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.playlists
    ADD CONSTRAINT playlists_pkey PRIMARY KEY (object);
ALTER TABLE ONLY public.proxy_keys
    ADD CONSTRAINT proxy_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.proxy_states
    ADD CONSTRAINT proxy_states_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.publications
    ADD CONSTRAINT publications_pkey PRIMARY KEY (key, name, revision);
ALTER TABLE ONLY public.publishers
    ADD CONSTRAINT publishers_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.secrets
    ADD CONSTRAINT secrets_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.traces
    ADD CONSTRAINT traces_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.views
    ADD CONSTRAINT views_pkey PRIMARY KEY (id);
CREATE INDEX downloads_seq_index ON public.downloads USING btree (seq);
CREATE INDEX errors_seq_index ON public.errors USING btree (seq);
CREATE INDEX publication_objects_name ON public.publication_objects USING btree (key, name);
CREATE INDEX publication_objects_object ON public.publication_objects USING btree (object);
