#!/usr/bin/env bash
# Makes the sample video under lab/stack/sample/media (which is committed: only run this to change the video).
# 24 s, 24 frames a second, H.264 in three sizes and AAC, closed groups of pictures of 2 s:
#   cmaf/       one set of CMAF segments with both a DASH manifest (stream.mpd) and HLS playlists (master.m3u8)
#   progressive.mp4   one file for a plain <video>, index first
# Needs node, ffmpeg with libx264, and the DejaVu fonts (Debian: apt-get install ffmpeg fonts-dejavu-core).
set -euo pipefail
cd "$(dirname "$0")"
seconds=24
fps=24
gop=$((2 * fps))
font=$(fc-match -f '%{file}' 'DejaVu Sans Mono:bold')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

clock="drawtext=fontfile=$font:text='%{pts\:hms}':fontsize=h/13:fontcolor=white@0.92:x=(w-text_w)/2:y=h*0.86:shadowcolor=black@0.5:shadowx=2:shadowy=2"
name="drawtext=fontfile=$font:text='tributary':fontsize=h/24:fontcolor=white@0.7:x=w*0.035:y=h*0.05"
tone() { echo "0.05*sin(2*PI*$1*t)*(0.55+0.45*sin(2*PI*t/$2))"; }
chord="$(tone 196 7)+$(tone 293.66 9)+$(tone 392 5)+$(tone 493.88 11)+$(tone 587.33 8)"

echo "drawing"
node frames.mjs 1280 720 "$fps" "$seconds" |
  ffmpeg -hide_banner -loglevel error -y -f rawvideo -pix_fmt rgb24 -s 1280x720 -r "$fps" -i - \
    -vf "$clock,$name,format=yuv420p" -c:v libx264 -preset ultrafast -qp 6 "$work/picture.mkv"
ffmpeg -hide_banner -loglevel error -y -f lavfi -i "aevalsrc=$chord|$chord:s=48000:d=$seconds" \
  -af "afade=t=in:d=1,afade=t=out:st=$((seconds - 2)):d=2" -c:a flac "$work/sound.flac"

video=(-c:v libx264 -preset veryslow -profile:v high -g "$gop" -keyint_min "$gop" -sc_threshold 0 -flags +cgop -bf 2 -threads 1)
audio=(-c:a aac -b:a 96k -ar 48000)
exact=(-map_metadata -1 -fflags +bitexact -flags:v +bitexact -flags:a +bitexact)

echo "encoding cmaf"
rm -rf media
mkdir -p media/cmaf
(cd media/cmaf && ffmpeg -hide_banner -loglevel error -y -i "$work/picture.mkv" -i "$work/sound.flac" \
  -filter_complex "[0:v]split=3[a][b][c];[a]scale=416:234[low];[b]scale=832:468[middle];[c]null[high]" \
  -map "[low]" -map "[middle]" -map "[high]" -map 1:a "${video[@]}" "${audio[@]}" \
  -b:v:0 300k -maxrate:v:0 360k -bufsize:v:0 600k \
  -b:v:1 900k -maxrate:v:1 1080k -bufsize:v:1 1800k \
  -b:v:2 1900k -maxrate:v:2 2280k -bufsize:v:2 3800k \
  "${exact[@]}" -f dash -seg_duration 2 -use_template 1 -use_timeline 1 -hls_playlist 1 -hls_master_name master.m3u8 \
  -adaptation_sets "id=0,streams=v id=1,streams=a" \
  -init_seg_name 'init-$RepresentationID$.m4s' -media_seg_name 'segment-$RepresentationID$-$Number%03d$.m4s' stream.mpd)

# The muxer stamps the time of the encoding on each segment; a recording has none.
sed -i '/^#EXT-X-PROGRAM-DATE-TIME/d' media/cmaf/media_*.m3u8

echo "encoding progressive"
ffmpeg -hide_banner -loglevel error -y -i "$work/picture.mkv" -i "$work/sound.flac" -vf scale=832:468 \
  "${video[@]}" -b:v 600k -maxrate 720k -bufsize 1200k "${audio[@]}" "${exact[@]}" -movflags +faststart media/progressive.mp4
du -sh media
