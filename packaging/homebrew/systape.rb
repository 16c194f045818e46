# For macOS and Linux: `brew install --HEAD ./packaging/homebrew/systape.rb` in a clone. It has analyze alone: tapes are recorded on
# Linux, and read anywhere.
class Systape < Formula
  desc "Answers questions from tapes, recordings of what a Linux machine did"
  homepage "https://github.com/systape/systape"
  license any_of: ["MIT", "Apache-2.0"]
  head "https://github.com/systape/systape.git", branch: "main"

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "analyzer")
    (man1/"analyze.1").write Utils.safe_popen_read(bin/"analyze", "--generate", "man")
    generate_completions_from_executable(bin/"analyze", "--generate")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/analyze --version") if build.stable?
    assert_match "no such file", shell_output("#{bin}/analyze info #{testpath}/none.tape 2>&1", 1)
  end
end
